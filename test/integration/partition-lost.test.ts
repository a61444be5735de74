import { expect, test } from "@jest/globals";
import { partitionKeys } from "window/redis/keys.ts";
import { presentAgain } from "../support/present-again.ts";
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

test("agents of a partition that was lost are present again though nobody sends, and those of the others stay", async () => {
  const agents = await relay.allOnline(pods, NAMES);
  const lost = view.partition(NAMES[0] as string);
  const held = await Promise.all(NAMES.map((name) => view.route(name)));
  const last = await view.windowId();
  const tag = partitionKeys.window(lost).split(":")[1];
  await view.client.del(...(await view.names(`relay:${tag}:*`)));

  await until("a window is opened", async () => (await view.windowId(lost)) !== null);
  await presentAgain(view, NAMES);
  expect(await Promise.all(NAMES.map((name) => view.route(name)))).toEqual(held);
  const windows = await Promise.all(Array.from({ length: PARTITIONS }, (_, p) => view.windowId(p)));
  expect(new Set(windows).size).toBe(1);
  expect(windows).not.toContain(last);
  for (const [n, from] of NAMES.entries()) {
    const to = NAMES[(n + 1) % NAMES.length] as string;
    const envelope = relay.envelope(from, "message.send", { to: `agent://${to}`, payload: { n } });
    await agents.get(from)?.ask(envelope);
    await agents.get(to)?.delivered(envelope.id);
  }
});
