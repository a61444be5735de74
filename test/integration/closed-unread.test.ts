import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, jest, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import { encode, frame, OPCODES } from "../hostile/support/frames.ts";
import { AdminClient } from "../support/admin.ts";
import { congest } from "../support/congest.ts";
import type { Pod } from "../support/relay.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** A client that stands still while its connection is closed, and reads on later: what it was promised is there, and then why. */

const relay = useRelay("alice", "bob-hmac", "carol-hmac", "dave-hmac", "erin-hmac", "frank-hmac");
const admin = given(() => AdminClient.make(`${relay.keysFile}.admin`));
const UNLIMITED = { RELAY_BYTES_PER_SECOND: "0", RELAY_ENVELOPES_PER_SECOND: "0" };
const sending = given(() => relay.startWsConnector(UNLIMITED));
const alice = given(() => relay.online(sending, "alice"));
/** Longer than ws waits for a client's answer to a close. */
const STANDSTILL_MS = 1500;

const takeOver = async (_: Pod, name: string) => {
  await relay.online(sending, name);
};
const disconnect = async (_: Pod, name: string) => {
  const { status } = await admin.disconnect(`agent://${name}`);
  expect(status).toBe(200);
};

// The clients stand still at the same time.
test.concurrent.each([
  ["another connection takes its agent over", 4409, "superseded", "bob-hmac", takeOver],
  ["the operator disconnects it", 1001, "draining", "carol-hmac", disconnect],
  ["its pod stops", 1001, "draining", "dave-hmac", (pod: Pod) => void pod.stop()],
] as const)(
  "when %s it reads all that was acked in realtime, the notice, and close code %i",
  async (_, code, notice, name, end) => {
    const pod = await relay.startWsConnector({ ...UNLIMITED, ...(end === disconnect ? admin.settings : {}) });
    const client = await relay.online(pod, name);
    const { promised, unknown } = await congest(relay, alice, client, name);
    await end(pod, name);
    await delay(STANDSTILL_MS);
    const closed = once(client.socket, "close");
    client.socket.resume();
    const [closedWith] = await closed;
    const received = client.deliveries.map(({ envelope }) => envelope.payload.n);
    expect(received.filter((n) => !unknown.has(n))).toEqual(promised);
    expect([client.notices(notice).length, closedWith]).toEqual([1, code]);
    await pod.stop();
  },
);

test("A pod stops though clients read nothing of what they were promised, one whose end was decided before among them", async () => {
  const pod = await relay.startWsConnector(UNLIMITED);
  const names = ["erin-hmac", "frank-hmac"];
  for (const name of names) await congest(relay, alice, await relay.online(pod, name), name);
  await takeOver(pod, "erin-hmac");
  // The time that clients have to read is over at once.
  const { setTimeout } = globalThis;
  const timers = jest.spyOn(globalThis, "setTimeout");
  const isWaitForReaders = (ms?: number) => ms === CONNECTION_LIMITS.outboxStalledAfterMs;
  const withoutWait = (run: () => void, ms?: number) => setTimeout(run, isWaitForReaders(ms) ? 0 : ms);
  timers.mockImplementation(withoutWait as typeof setTimeout);
  await pod.stop();
  expect(timers.mock.calls.filter(([, ms]) => isWaitForReaders(ms)).length).toBeGreaterThanOrEqual(names.length);
  timers.mockRestore();
});

test.each([
  ["an operator disconnects it", (pod: Pod) => disconnect(pod, "bob-hmac")],
  ["its pod stops", (pod: Pod) => pod.stop()],
] as const)("an invalid frame in answer to a close, when %s, ends that connection alone", async (_, end) => {
  const pod = await relay.startWsConnector({ ...UNLIMITED, ...admin.settings });
  const bob = await relay.online(pod, "bob-hmac");
  const { _socket: stream } = bob.socket as unknown as { _socket: Socket };
  bob.socket.on("message", () => stream.write(encode(frame(OPCODES.text, "", { rsv: 7 }))));
  await end(pod);
  await bob.untilClosed();
  await pod.stop();
});
