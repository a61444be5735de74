import { expect, test } from "@jest/globals";
import type { LateAgent } from "../../src/mcp/late-agent.ts";
import { serve } from "../../src/mcp/server.ts";

type Transport = Parameters<typeof serve>[1];

/** A server with a client that reads when it is let to. */
async function unread(isBehind?: () => boolean) {
  const waiting: (() => void)[] = [];
  const transport = {
    start: async () => {},
    close: async () => {},
    send: () => new Promise<void>((read) => waiting.push(read)),
  } as unknown as Transport;
  let arrive = () => {};
  const agent = {
    onDelivery: (listener: (agent: object) => void) => {
      arrive = () => listener({ queue: { isAwaited: false, size: 1 } });
      return () => {};
    },
  } as unknown as LateAgent;
  await serve(agent, transport, "1.0.0", undefined, isBehind);
  return { waiting, arrive: () => arrive() };
}

/** What was begun has come to an end, but for what waits for the client. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("A client that does not read has one notification kept, however many messages come", async () => {
  const { waiting, arrive } = await unread();
  for (let n = 0; n < 100; n += 1) arrive();
  await settled();
  expect(waiting).toHaveLength(1);
  waiting[0]?.();
  await settled();
  arrive();
  await settled();
  expect(waiting).toHaveLength(2);
});

test("A client is told nothing while its stream is behind, and again after it", async () => {
  let isBehind = true;
  const { waiting, arrive } = await unread(() => isBehind);
  arrive();
  await settled();
  expect(waiting).toHaveLength(0);
  isBehind = false;
  arrive();
  await settled();
  expect(waiting).toHaveLength(1);
});
