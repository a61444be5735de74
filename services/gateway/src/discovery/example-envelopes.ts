import { hash } from "node:crypto";
import { privateKeyOfSeed, sign } from "relay-protocol/signing/algorithms.ts";
import { canonicalText, signedText } from "relay-protocol/signing/canonical.ts";
import { testVectors } from "relay-protocol/signing/test-vectors.ts";
import type { Envelope, UnsignedEnvelope } from "relay-protocol/wire/envelope.ts";

/** The facts of the example that all documents show: alice asks bob for a session. Times are Unix ms. */
export const EXAMPLE_TIME = 1_790_000_000_000;
export const ALICE = "agent://alice";
export const BOB = "agent://bob";
export const EXAMPLE_SESSION_ID = "ses_00000000000000000000000000";
export const EXAMPLE_ENVELOPE_ID = "env_00000000000000000000000000";

const COMMON = { from: ALICE, to: BOB };

const UNSIGNED = {
  "agent.register": { from: ALICE, payload: { label: "Alice", capabilities: ["translation"] } },
  "agent.heartbeat": { from: ALICE, payload: {} },
  "message.send": { ...COMMON, payload: { message: "Hello, Bob." } },
  "message.offer": { ...COMMON, payload: { pages: 10, by: "Friday" } },
  "session.request": { ...COMMON, payload: { purpose: "Agree on terms for a translation.", ttl_minutes: 60 } },
  "session.approve": { from: BOB, to: ALICE, payload: { session_id: EXAMPLE_SESSION_ID } },
  "session.reject": { from: BOB, to: ALICE, payload: { session_id: EXAMPLE_SESSION_ID, reason: "No capacity today." } },
} as const;

export type ExampleType = keyof typeof UNSIGNED;

const VECTOR = testVectors().find(({ alg }) => alg === "ed25519");
const KEY_ID = String(VECTOR?.envelope.key_id);
const PRIVATE_KEY = privateKeyOfSeed(Buffer.from(VECTOR?.key.private_key ?? "", "base64url"));

/** What a decision says of the request that it decides. Source: docs/protocol.md#session-receipts. */
function requestDigest(): string {
  const request = exampleEnvelope("session.request");
  return hash("sha256", signedText(canonicalText(request), request.sig), "base64url");
}

/** An envelope of each type, signed with the published Ed25519 key of the test vectors. */
export function exampleEnvelope(type: ExampleType): Envelope {
  const { payload: own, ...addresses } = UNSIGNED[type];
  const payload = type === "session.approve" ? { ...own, request_sha256: requestDigest() } : own;
  const id = `example-${type.replace(".", "-")}`;
  const envelope: UnsignedEnvelope = { id, type, ...addresses, payload, ts: EXAMPLE_TIME, key_id: KEY_ID };
  return { ...envelope, sig: sign({ alg: "ed25519", privateKey: PRIVATE_KEY }, canonicalText(envelope)) };
}
