import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { resetWindow } from "@agent-relay/shared/window/reset.ts";
import { readSession } from "@agent-relay/shared/window/sessions.ts";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type Pod, TestRelay } from "../support/relay.ts";
import type { WindowView } from "../support/window-view.ts";

const relay = new TestRelay("alice", "bob-hmac");
const noLeaks = watchLeaks();
let view: WindowView;
let link: RedisLink;
let alice: AgentSocket;
let bob: AgentSocket;

beforeAll(async () => {
  await relay.start();
  const pods: Pod[] = [await relay.startWsConnector(), await relay.startWsConnector()];
  view = relay.view();
  link = new RedisLink({ url: relay.redis.url, name: "test", logger: relay.logger("test") });
  await link.start();
  alice = await relay.online(pods[0] as Pod, "alice");
  bob = await relay.online(pods[1] as Pod, "bob-hmac");
});
afterAll(async () => {
  await link.stop();
  await relay.stop();
  await noLeaks();
});

test("a reset under live connections empties the window but the replay guard; the next heartbeat brings each back", async () => {
  await expectFreshWindowAfter(async () => {
    const reset = await resetWindow(link, { partitions: 1, deployId: "local", force: true });
    expect(reset).toMatchObject({ outcome: "opened" });
  });
});

test("the reset command does the same for a new deploy, and keeps the window of the same one", async () => {
  const command = (deployId: string) =>
    promisify(execFile)(process.execPath, ["deploy/redis/window-reset.ts"], {
      env: { REDIS_URL: relay.redis.url, RELAY_DEPLOY_ID: deployId },
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
  expect(await readSession(link, session_id, 1)).toBeNull();

  expect(await alice.ask(before)).toMatchObject({ duplicate: true, target_delivery: { status: "not_seen" } });
  expect(await alice.ask(request)).toMatchObject({ duplicate: true, session_id, session_status: "expired" });
  expect(await alice.ask(message())).toMatchObject({ target_delivery: { status: "not_seen" } });
  expect(await view.counters()).toEqual({ published_envelopes: 1, websocket_accepted: 1 });

  expect(await alice.ask(relay.envelope("alice", "agent.heartbeat"))).toMatchObject({ presence: { status: "online" } });
  expect(await bob.ask(relay.envelope("bob-hmac", "agent.heartbeat"))).toMatchObject({
    presence: { status: "online" },
  });
  const after = message();
  expect(await alice.ask(after)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await bob.delivered(after.id);
  expect(bob.deliveries.filter(({ envelope }) => envelope.id === before.id)).toHaveLength(1);
  expect(await view.counters()).toEqual({ published_envelopes: 2, websocket_accepted: 4 });
}

function message(): Frame {
  return relay.envelope("alice", "message.send", { to: "agent://bob-hmac", payload: { message: "hi" } });
}
