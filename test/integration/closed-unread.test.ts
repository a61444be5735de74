import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import { encode, frame, OPCODES } from "../hostile/support/frames.ts";
import { AdminClient } from "../support/admin.ts";
import type { AgentSocket } from "../support/agent.ts";
import type { Pod } from "../support/relay.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** A client that stands still while its connection is closed, and reads on later: what it was promised is there, and then why. */

const relay = useRelay("alice", "bob-hmac", "carol-hmac");
const admin = given(() => AdminClient.make(`${relay.keysFile}.admin`));
const UNLIMITED = { RELAY_BYTES_PER_SECOND: "0", RELAY_ENVELOPES_PER_SECOND: "0" };
const sending = given(() => relay.startWsConnector(UNLIMITED));
const alice = given(() => relay.online(sending, "alice"));
const TEXT = "x".repeat(30_000);
/** Longer than ws waits for a client's answer to a close. */
const STANDSTILL_MS = 1500;

/** Sends until the kernel takes no more and the connection is congested. @returns the numbers that were promised. */
async function fill(recipient: AgentSocket, name: string): Promise<number[]> {
  recipient.socket.pause();
  const promised: number[] = [];
  for (let n = 0; ; n += 1) {
    const message = relay.envelope("alice", "message.send", { to: `agent://${name}`, payload: { n, text: TEXT } });
    if (!(await alice.ask(message)).target_delivery.can_deliver_realtime) return promised;
    promised.push(n);
  }
}

const takeOver = async () => {
  await relay.online(sending, "bob-hmac");
};
const disconnect = async () => {
  const { status } = await admin.disconnect("agent://bob-hmac");
  expect(status).toBe(200);
};

test.each([
  ["another connection takes its agent over", 4409, "superseded", takeOver],
  ["the operator disconnects it", 1001, "draining", disconnect],
  ["its pod stops", 1001, "draining", (pod: Pod) => void pod.stop()],
] as const)(
  "when %s it reads all that was acked in realtime, the notice, and close code %i",
  async (_, code, notice, end) => {
    const pod = await relay.startWsConnector({ ...UNLIMITED, ...admin.settings });
    const bob = await relay.online(pod, "bob-hmac");
    const promised = await fill(bob, "bob-hmac");
    await end(pod);
    await delay(STANDSTILL_MS);
    const closed = once(bob.socket, "close");
    bob.socket.resume();
    const [closedWith] = await closed;
    expect(bob.deliveries.map(({ envelope }) => envelope.payload.n)).toEqual(promised);
    expect([bob.notices(notice).length, closedWith]).toEqual([1, code]);
    await pod.stop();
  },
  60_000,
);

test("A pod stops though clients read nothing of what they were promised, one whose end was decided before among them", async () => {
  const pod = await relay.startWsConnector({ ...UNLIMITED, ...admin.settings });
  const [bob, carol] = [await relay.online(pod, "bob-hmac"), await relay.online(pod, "carol-hmac")];
  await fill(bob, "bob-hmac");
  await fill(carol, "carol-hmac");
  await takeOver();
  const startedAt = performance.now();
  await pod.stop();
  const tookMs = performance.now() - startedAt;
  expect(tookMs).toBeGreaterThan(CONNECTION_LIMITS.outboxStalledAfterMs - 100);
  expect(tookMs).toBeLessThan(CONNECTION_LIMITS.outboxStalledAfterMs + 5000);
}, 60_000);

test.each([
  ["an operator disconnects it", async () => void (await admin.disconnect("agent://bob-hmac"))],
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
