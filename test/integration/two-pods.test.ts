import { createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";
import { expect, test } from "@jest/globals";
import { type AgentSocket, canonical, type Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const MESSAGES = 500;
const relay = useRelay("ed", "mac-hmac");
const ed = given(async () => relay.online(await relay.startWsConnector(), "ed"));
const mac = given(async () => relay.online(await relay.startWsConnector(), "mac-hmac"));

test("two pods carry messages both ways in order, signed so that node:crypto alone can tell", async () => {
  for (let n = 0; n < MESSAGES; n += 1) {
    ed.send(relay.envelope("ed", "message.send", { to: "agent://mac-hmac", payload: { n, text: "ü — ✓" } }));
    mac.send(relay.envelope("mac-hmac", "message.send", { to: "agent://ed", payload: { n, deep: { b: 1, a: [n] } } }));
  }
  await until("all are delivered", () => [ed, mac].every(({ deliveries }) => deliveries.length === MESSAGES));
  const inOrder = Array.from({ length: MESSAGES }, (_, n) => n);
  expect(mac.deliveries.map(({ envelope }) => envelope.payload.n)).toEqual(inOrder);
  expect(ed.deliveries.map(({ envelope }) => envelope.payload.n)).toEqual(inOrder);
  expect(mac.deliveries.every(({ envelope }) => isSignedByEd(envelope))).toBe(true);
  expect(ed.deliveries.every(({ envelope }) => isSignedByMac(envelope))).toBe(true);
  expect(mac.deliveries.some(({ envelope }) => isSignedByEd({ ...envelope, ts: envelope.ts + 1 }))).toBe(false);

  await until("all are acknowledged", () => [ed, mac].every((socket) => acks(socket).length === MESSAGES));
  for (const { target_delivery } of [...acks(ed), ...acks(mac)]) {
    expect(target_delivery).toEqual({ status: "online", can_deliver_realtime: true });
  }
});

function isSignedByEd({ sig, ...envelope }: Frame): boolean {
  const x = keyOf("ed").public_key as string;
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return verify(null, Buffer.from(canonical(envelope)), key, Buffer.from(sig, "base64url"));
}

function isSignedByMac({ sig, ...envelope }: Frame): boolean {
  const secret = Buffer.from(keyOf("mac-hmac").secret as string, "base64url");
  const expected = createHmac("sha256", secret).update(canonical(envelope)).digest();
  return timingSafeEqual(expected, Buffer.from(sig, "base64url"));
}

function keyOf(name: string): { readonly public_key?: string; readonly secret?: string } {
  const { signing_keys } = relay.keys.file as { signing_keys: { agents: string[] }[] };
  return signing_keys.find(({ agents }) => agents.includes(`agent://${name}`)) as object;
}

function acks(socket: AgentSocket): Frame[] {
  return socket.frames.filter(({ type }) => type === "message.send");
}
