import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SIGNATURE_CHARACTERS } from "relay-protocol/signing/algorithms.ts";
import { NO_RECONNECT } from "relay-protocol/wire/close-codes.ts";
import { CREDENTIAL_HEADER, CREDENTIAL_REASONS } from "relay-protocol/wire/credential.ts";
import { CANONICAL_SIGNING_ORDER } from "relay-protocol/wire/envelope.ts";
import { CONNECTION_LIMITS, CREDENTIAL_LIMITS, ENVELOPE_LIMITS } from "relay-protocol/wire/limits.ts";
import { relayName } from "relay-runtime/addresses.ts";
import { signingManifest } from "./manifests.ts";
import {
  DELIVERY_RULES,
  DESCRIPTION,
  type DiscoverySettings,
  PENDING_RULE,
  RATE_RULE,
  UNKNOWN_RULE,
  urlOf,
} from "./relay-description.ts";

const SECOND_MS = 1000;
const ORDER = CANONICAL_SIGNING_ORDER.map((name) => `\`${name}\``).join(", ");

/** How to connect, sign and send, in Markdown, for a reader who has nothing else. Source: docs/protocol.md#signatures. */
export function websocketGuide(settings: DiscoverySettings): string {
  const { baseUrl } = settings;
  return [
    DESCRIPTION,
    `## Connect\n\n${connect()}`,
    `## Sign\n\n${sign(baseUrl)}`,
    `## Credentials\n\n${credentialRules(settings)}`,
    `## Sessions and replies\n\n${SESSION_RULES}`,
    `## Sealed payloads\n\n${sealingRules(settings)}`,
    `## Session receipts\n\n${RECEIPT_RULES}`,
    `## Rates\n\n${rates()}`,
    `## Examples\n\n${EXAMPLES}`,
    `## Closes\n\n\`x-close-codes\` has the codes. ${NO_RECONNECT} The frame that 1003, 1007 or 1009 is about was not accepted; of every other envelope without an answer the outcome is unknown.`,
    `## Delivery\n\n${[...DELIVERY_RULES, PENDING_RULE, UNKNOWN_RULE].map((rule) => `- ${rule}`).join("\n")}`,
  ].join("\n\n");
}

/** The same facts for programs, from the signing manifest, whose address they name. */
export function signingFacts(settings: DiscoverySettings): object {
  const {
    canonical_signing_order,
    canonicalization,
    algorithms,
    encoding,
    max_clock_skew_ms,
    test_vectors,
    self_test,
  } = signingManifest(settings);
  return {
    canonical_signing_order,
    canonicalization,
    algorithms,
    encoding,
    max_clock_skew_ms,
    signing_manifest: urlOf(settings.baseUrl, "signingManifest"),
    self_test,
    test_vectors,
  };
}

function connect(): string {
  const { registerWithinMs, heartbeatIntervalMs, heartbeatMaxMs, maxAgentsPerConnection } = CONNECTION_LIMITS;
  const { unregisteredFrames, unregisteredBytes } = CONNECTION_LIMITS;
  const { maxFrameBytes, maxPayloadDepth, maxPayloadMembers } = ENVELOPE_LIMITS;
  return [
    "1. Open a websocket to the server at either path of the channel. No header, token or subprotocol is needed. The relay sends `hello`.",
    `2. Send a signed \`agent.register\` within ${registerWithinMs / SECOND_MS} s, then \`agent.heartbeat\` every ${heartbeatIntervalMs / SECOND_MS} s, at most ${heartbeatMaxMs / SECOND_MS} s apart, both with \`payload.relay\` and \`payload.connection_id\`: no use elsewhere then. A heartbeat alone brings an agent online, too, where no live connection has it and the relay lists its key; a key with a credential registers. Before its first valid envelope a connection may send ${unregisteredFrames} frames and ${unregisteredBytes} bytes, then it is closed with 1008. A connection carries at most ${maxAgentsPerConnection} agents.`,
    "3. Send envelopes. Each is answered with an `ack` or an `error` that has its `id` as `envelope_id`. Envelopes for your agents come as `deliver`, and notices at any time.",
    `4. Every frame is a text frame with one JSON object of at most ${maxFrameBytes} bytes. An envelope has no members but those of its schema; a payload has at most ${maxPayloadDepth} levels, and ${maxPayloadMembers} members and array elements in total.`,
  ].join("\n");
}

function sign(baseUrl: string): string {
  const { ed25519, "hmac-sha256": hmac } = SIGNATURE_CHARACTERS;
  const manifest = urlOf(baseUrl, "signingManifest");
  const selfTest = urlOf(baseUrl, "selfTest");
  return [
    "You need a key for your agent id: an Ed25519 key or an HMAC secret that the relay's operator lists, or an Ed25519 key with a [credential](#credentials).",
    [
      `1. Make the canonical text: one JSON object with the members ${ORDER} in this order. Absent members and \`sig\` are left out. Each value is written as in RFC 8785 (JCS), without white space: inside \`payload\` the members of every object are sorted by the UTF-16 code units of their names; strings and numbers are as \`JSON.stringify\` of ECMAScript writes them. The eight members are not.`,
      "2. Sign the UTF-8 bytes of this text with the key that `key_id` names: Ed25519 (RFC 8032, without prehashing; the private key is a seed of 32 bytes) or HMAC-SHA256 (RFC 2104; the secret is the key in base64url). The key decides which, not the envelope.",
      `3. \`sig\` is the signature in base64url (RFC 4648, section 5) without padding: ${ed25519} characters for Ed25519, ${hmac} for HMAC-SHA256.`,
      "4. Send the envelope, the same members and `sig`, as JSON, in any order and spacing.",
    ].join("\n"),
    `\`id\` is new for each envelope: a used one with another \`ts\` is acked, and its recipient, which takes an id of a sender once, drops it. \`ts\` is the time in epoch milliseconds, within ${ENVELOPE_LIMITS.maxClockSkewMs} of the relay's (\`server_time\` of \`hello\`).`,
    `\`x-signing\` has these facts for programs, with test vectors, and so has ${manifest}, with the gateways' public keys. POST a signed envelope to ${selfTest} to have it checked, to ${selfTest}?explain=1 to get its canonical text as well.`,
  ].join("\n\n");
}

function rates(): string {
  const { keyShare, keyBytesShare } = CONNECTION_LIMITS;
  return `\`limits\` of \`hello\` are those of one connection; all of one key on a pod together have ${keyShare} times the envelopes and ${keyBytesShare} times the bytes a second, with the burst of one. ${RATE_RULE}`;
}

const EXAMPLES =
  "Each example of an envelope is signed with the Ed25519 key of the test vectors, which no operator adds. Its summary names the members to replace; make `sig` last.";

/** Source: docs/protocol.md#credentials. */
function credentialRules(settings: DiscoverySettings): string {
  const { typ, algorithms } = CREDENTIAL_HEADER;
  const manifest = urlOf(settings.baseUrl, "signingManifest");
  const reasons = Object.keys(CREDENTIAL_REASONS).map((reason) => `\`${reason}\``);
  return [
    `A credential binds a key that the relay does not list to one agent id. It is a compact JWT of at most ${CREDENTIAL_LIMITS.maxCharacters} characters, signed with Ed25519 by an issuer that the relay's operator admits: GET ${manifest} has their keys, agents and revocations as \`issuers\`, and an example as \`credential_test_vector\`.`,
    [
      `- Header: exactly \`alg\` (${algorithms.join(" or ")}), \`typ\` ${typ}, and \`kid\`, the RFC 7638 thumbprint of the issuer's key.`,
      "- Claims: `iss`, the issuer; `sub`, one agent id; `cnf` {`jwk`}, the agent's Ed25519 key; `iat` and `exp`, whole seconds, at most 90 days apart; optional `nbf`, `aud` (must contain this relay's name) and `enc` {`jwk`}, an X25519 key to [seal](#sealed-payloads) to.",
      "- `agents` of an issuer: ids, namespaces (`….*`), or `*`; of all patterns, those of listed keys too, the closest decides whose an agent is. `revoked` ends the credentials of an agent (`*`: of all) whose `iat` lies before `issued_before`.",
      '- `key_id` is `jkt-` and the RFC 7638 thumbprint of the agent\'s key: base64url SHA-256 of `{"crv":"Ed25519","kty":"OKP","x":"…"}`.',
      `- \`agent.register\` carries the token as \`payload.credential\`, with \`payload.relay\`: \`${relayName(settings)}\`.`,
      "- A connection knows such a key by its accepted register alone; before that any other envelope under it is `unknown_key`. Renew by another register on the same connection before `credential_expires_at_iso` of the ack.",
      `- \`invalid_credential\` begins its message with the reason, and its hint says what to do: ${reasons.join(", ")}.`,
    ].join("\n"),
    `GET ${settings.baseUrl}${SURFACES.readCredential.path} (a template, RFC 6570) is the credential of any agent.`,
  ].join("\n\n");
}

/** Source: docs/protocol.md#sessions. */
const SESSION_RULES = [
  "- A `session.request` opens a session; its `session_id` stands in the ack, and in the target's `deliver`. It is pending until its target alone sends `session.approve` or `session.reject` with `payload.session_id` and `to` = the requester, or until `ttl_minutes` are over.",
  "- An approval is the target's signed word. Messages need no session.",
  "- The relay ties no message to a session. Tell the other agent in `task_id`, which is signed: put the `session_id` there.",
  "- A reply is a `message.reply` to the asker, with as `task_id` that of the asked envelope, else its `id`. It is never answered automatically.",
].join("\n");

/** Source: docs/protocol.md#sealed-payloads. */
const sealingRules = ({ baseUrl }: DiscoverySettings): string =>
  [
    "A payload for its recipient's eyes alone is sealed by HPKE in base mode (RFC 9180): DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, to the key in `enc` of the recipient's credential, from an issuer that you pinned. It has one member:",
    '```json\n{"sealed":{"v":1,"kid":"<RFC 7638 thumbprint of the X25519 key>","enc":"<base64url>","ct":"<base64url>"}}\n```',
    "`info` is the text `agent-relay sealed payload v1`; `aad` is the UTF-8 RFC 8785 text of {`from`, `id`, `kid`, `task_id` where present, `to`, `type`, `v`}. What is sealed is the UTF-8 JSON text of the payload, an object of at most 23000 bytes. Open with the key of `kid` and no other, and believe only a sender whose key or issuer you pinned. Gateways and HMAC keys cannot seal.",
    `\`sealed_payload_test_vector\` of ${urlOf(baseUrl, "signingManifest")} has a key, \`aad\`, plaintext and envelope.`,
  ].join("\n\n");

/** Source: docs/protocol.md#session-receipts. */
const RECEIPT_RULES = [
  "A decision with `payload.request_sha256`, the base64url SHA-256 of the request's canonical text with `sig` as its last member, as you verified it, makes a receipt possible: {`version`: 1, `request`, `decision`, `credentials`: [tokens]}.",
  "It holds when: both signatures do, by credentials that held at each `ts` and whose `sub` is `from`; `decision.from` is `request.to` and the reverse; the digest is the request's; the last 24 digits of `session_id` are the first 15 bytes of that digest in Crockford base32, lower case as all of it; and the decision's `ts` lies between the request's less 300 s and the end of its ttl. It shows that both keys signed.",
].join("\n\n");
