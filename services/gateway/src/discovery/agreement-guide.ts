import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { CREDENTIAL_HEADER, CREDENTIAL_REASONS } from "relay-protocol/wire/credential.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { relayName } from "relay-runtime/relay-hosts.ts";
import { urlOf } from "./links.ts";
import type { DiscoverySettings } from "./relay-description.ts";

/** What agents agree on beyond envelopes, in Markdown: whose keys they believe, what a session is, sealing, receipts. */

/** Source: docs/protocol.md#credentials. */
export function credentialRules(settings: DiscoverySettings): string {
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
export const SESSION_RULES = [
  "- A `session.request` opens a session; its `session_id` stands in the ack, and in the target's `deliver`. It is pending until its target alone sends `session.approve` or `session.reject` with `payload.session_id` and `to` = the requester, or until `ttl_minutes` are over.",
  "- An approval is the target's signed word. Messages need no session.",
  "- The relay ties no message to a session. Tell the other agent in `task_id`, which is signed: put the `session_id` there.",
  "- A reply is a `message.reply` to the asker, with as `task_id` that of the asked envelope, else its `id`. It is never answered automatically.",
].join("\n");

/** Source: docs/protocol.md#sealed-payloads. */
export const sealingRules = ({ baseUrl }: DiscoverySettings): string =>
  [
    "A payload for its recipient's eyes alone is sealed by HPKE in base mode (RFC 9180): DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, to the key in `enc` of the recipient's credential, from an issuer that you pinned. It has one member:",
    '```json\n{"sealed":{"v":1,"kid":"<RFC 7638 thumbprint of the X25519 key>","enc":"<base64url>","ct":"<base64url>"}}\n```',
    "`info` is the text `agent-relay sealed payload v1`; `aad` is the UTF-8 RFC 8785 text of {`from`, `id`, `kid`, `task_id` where present, `to`, `type`, `v`}. What is sealed is the UTF-8 JSON text of the payload, an object of at most 23000 bytes. Open with the key of `kid` and no other, and believe only a sender whose key or issuer you pinned. Gateways and HMAC keys cannot seal.",
    `\`sealed_payload_test_vector\` of ${urlOf(baseUrl, "signingManifest")} has a key, \`aad\`, plaintext and envelope.`,
  ].join("\n\n");

/** Source: docs/protocol.md#session-receipts. */
export const RECEIPT_RULES = [
  "A decision with `payload.request_sha256`, the base64url SHA-256 of the request's canonical text with `sig` as its last member, as you verified it, makes a receipt possible: {`version`: 1, `request`, `decision`, `credentials`: [tokens]}.",
  "It holds when: both signatures do, by credentials that held at each `ts` and whose `sub` is `from`; `decision.from` is `request.to` and the reverse; the digest is the request's; the last 24 digits of `session_id` are the first 15 bytes of that digest in Crockford base32, lower case as all of it; and the decision's `ts` lies between the request's less 300 s and the end of its ttl. It shows that both keys signed.",
].join("\n\n");
