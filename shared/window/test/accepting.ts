import { afterAll, afterEach, beforeEach } from "@jest/globals";
import type { Principal } from "../src/principal.ts";
import { envelopeOf, messageOf } from "./envelopes.ts";
import { Bench, BOB, type Incoming, type Pod } from "./kit.ts";

/** BOB, who says whom he accepts envelopes from, and who sends to him. */

export const ALICE = "agent://alice";
export const MALLORY = "agent://mallory";
export const REFUSED = { outcome: "not_accepted_by_target" };
export const ACCEPTED = { outcome: "accepted" };
export const bench = new Bench();
/** Of each test one of its own. */
export let pod: Pod;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod();
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

/** BOB registers; undefined says nothing of whom it accepts. */
export async function registers(accept_from?: readonly string[], incoming: Incoming = {}) {
  const payload = accept_from === undefined ? {} : { accept_from };
  return await pod.accept(envelopeOf("agent.register", BOB, { payload }), incoming);
}

export async function sends(from: string, principal: Principal = "key:key-1") {
  return await pod.accept(messageOf(from, BOB), { principal });
}
