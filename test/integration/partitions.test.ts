import { expect, test } from "@jest/globals";
import { resetWindow } from "window/reset.ts";
import { readSession } from "window/sessions.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { readingWindow } from "../support/reading-window.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const PARTITIONS = 4;
const NAMES = ["ada", "berta", "carl", "dora", "emil", "frida", "gustav", "zoe"].map((name) => `${name}-hmac`);
const SETTINGS = { RELAY_PARTITIONS: String(PARTITIONS) };
const relay = useRelay(...NAMES);
const pods = given(
  async () => [await relay.startWsConnector(SETTINGS), await relay.startWsConnector(SETTINGS)] as const,
);
const view = given(() => relay.view(PARTITIONS));
const link = given(() => relay.link());
const resetting = given(() => relay.link("window-reset"));
const agents = given(() => relay.allOnline(pods, NAMES));

test("the agents of this test lie in every partition, and all partitions are in one window", async () => {
  expect(new Set(NAMES.map((name) => view.partition(name))).size).toBe(PARTITIONS);
  const windows = await Promise.all(Array.from({ length: PARTITIONS }, (_, p) => view.windowId(p)));
  expect(new Set(windows).size).toBe(1);
});

test("every agent reaches every other one, in order, whatever their partitions", async () => {
  const pairs = NAMES.flatMap((from) => NAMES.filter((to) => to !== from).map((to) => ({ from, to })));
  for (let n = 0; n < 5; n += 1) {
    for (const { from, to } of pairs) socketOf(from).send(message(from, to, n));
  }
  for (const { from, to } of pairs) {
    const received = () =>
      socketOf(to)
        .deliveries.filter(({ envelope }) => envelope.from === `agent://${from}`)
        .map(({ envelope }) => envelope.payload.n);
    await until(`${from} reaches ${to}`, () => received().length === 5);
    expect(received()).toEqual([0, 1, 2, 3, 4]);
  }
});

test("sessions are requested, decided and looked up between agents of any two partitions", async () => {
  const [requester, ...targets] = NAMES as [string, ...string[]];
  for (const [n, target] of targets.entries()) {
    const request = { to: `agent://${target}`, payload: { purpose: "talk" } };
    const { session_id } = await socketOf(requester).ask(relay.envelope(requester, "session.request", request));
    const [word, status] = n % 2 === 0 ? ["approve", "approved"] : ["reject", "rejected"];
    const decision = relay.envelope(target, `session.${word}`, {
      to: `agent://${requester}`,
      payload: { session_id },
    });
    expect(await socketOf(target).ask(decision)).toMatchObject({ session_id, session_status: status });
    expect(await socketOf(requester).delivered(decision.id)).toMatchObject({ session_id });
    expect(await readSession(link, readingWindow(link, PARTITIONS), session_id)).toMatchObject({
      status,
      target: `agent://${target}`,
    });
  }
});

test("a session can be decided by its target alone, wherever the others lie", async () => {
  const [requester, target, ...others] = NAMES as [string, string, ...string[]];
  const request = { to: `agent://${target}`, payload: { purpose: "talk" } };
  const { session_id } = await socketOf(requester).ask(relay.envelope(requester, "session.request", request));
  for (const other of others) {
    const decision = { to: `agent://${requester}`, payload: { session_id } };
    expect(await socketOf(other).ask(relay.envelope(other, "session.approve", decision))).toMatchObject({
      code: "not_your_session",
    });
  }
});

test("an agent is taken over and released in its own partition", async () => {
  for (const [n, name] of NAMES.entries()) {
    const former = socketOf(name);
    const latter = await relay.online(pods[(n + 1) % 2] as Pod, name);
    expect(await former.untilClosed()).toBe(4409);
    expect((await view.route(name))?.connection).toBe(latter.connectionId);
    await latter.close();
    await until(`${name} is released`, async () => !(await view.isConnected(name)));
  }
});

test("a reset opens one new window in all partitions", async () => {
  const { windowId } = (await resetWindow(resetting, { partitions: PARTITIONS, deployId: "next", force: false })) as {
    windowId: string;
  };
  for (const name of NAMES) {
    const socket = await relay.online(pods[0], name);
    expect(await view.windowId(view.partition(name))).toBe(windowId);
    await socket.close();
  }
  expect(await view.counters()).toEqual({ websocket_accepted: NAMES.length });
});

function socketOf(name: string): AgentSocket {
  return agents.get(name) as AgentSocket;
}

function message(from: string, to: string, n: number): Frame {
  return relay.envelope(from, "message.send", { to: `agent://${to}`, payload: { n } });
}
