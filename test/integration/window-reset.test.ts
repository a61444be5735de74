import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { resetWindow } from "window/reset.ts";
import { readSession } from "window/sessions.ts";
import type { Frame } from "../support/agent.ts";
import { presentAgain } from "../support/present-again.ts";
import { readingWindow } from "../support/reading-window.ts";
import { given, useRelay } from "../support/use-relay.ts";

const relay = useRelay("alice", "bob-hmac");
const alice = given(async () => relay.online(await relay.startWsConnector(), "alice"));
const bob = given(async () => relay.online(await relay.startWsConnector(), "bob-hmac"));
const view = given(() => relay.view());
const link = given(() => relay.link());
const resetting = given(() => relay.link("window-reset"));

test("a reset under live connections empties the window but the replay guard, and each is present again", async () => {
  await expectFreshWindowAfter(async () => {
    const reset = await resetWindow(resetting, { partitions: relay.partitions, deployId: "local", force: true });
    expect(reset).toMatchObject({ outcome: "opened" });
  });
});

test("the reset command does the same for a new deploy, and keeps the window of the same one", async () => {
  const command = (deployId: string) =>
    promisify(execFile)(process.execPath, ["deploy/redis/window-reset.ts"], {
      env: relay.environmentOf("window-reset", { RELAY_DEPLOY_ID: deployId }),
    });
  await expectFreshWindowAfter(async () => {
    expect((await command("next")).stdout).toMatch(/^window opened: win_/);
  });
  expect((await command("next")).stdout).toBe(`window kept: ${await view.windowId()}\n`);
  expect(await view.isConnected("alice")).toBe(true);
});

async function expectFreshWindowAfter(reset: () => Promise<void>): Promise<void> {
  const before = message();
  await alice.ask(before);
  const request = relay.envelope("alice", "session.request", { to: "agent://bob-hmac", payload: { purpose: "talk" } });
  const { session_id } = await alice.ask(request);
  const lastWindow = await view.windowId();

  await reset();
  expect(await view.windowId()).not.toBe(lastWindow);
  expect(await view.counters()).toEqual({});
  expect(await readSession(link, readingWindow(link, relay.partitions), session_id)).toBeNull();

  expect(await alice.ask(before)).toMatchObject({ duplicate: true });
  expect(await alice.ask(request)).toMatchObject({ duplicate: true, session_id, session_status: "expired" });
  expect(await view.counters()).toEqual({});

  await presentAgain(view, ["alice", "bob-hmac"]);
  const after = message();
  expect(await alice.ask(after)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await bob.delivered(after.id);
  expect(bob.deliveries.filter(({ envelope }) => envelope.id === before.id)).toHaveLength(1);
  expect(await view.counters()).toEqual({ published_envelopes: 1, websocket_accepted: 1 });
}

function message(): Frame {
  return relay.envelope("alice", "message.send", { to: "agent://bob-hmac", payload: { message: "hi" } });
}
