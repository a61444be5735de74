import { describe, expect, test } from "@jest/globals";
import { KeysFile } from "../../src/contract/keys-file.ts";
import {
  type BroughtKeys,
  entryOfCredential,
  invalidCredential,
  isIssued,
  type KnownKeys,
} from "../../src/intake/credential-step.ts";
import { isRefusal } from "../../src/intake/refusal.ts";
import { checkAfterSignature, checkBeforeSignature } from "../../src/intake/steps.ts";
import { privateKeyOfSeed, type SigningKey, sign, verify } from "../../src/signing/algorithms.ts";
import { canonicalText } from "../../src/signing/canonical.ts";
import { KeyRing } from "../../src/signing/key-ring.ts";
import {
  AGENT,
  CLAIMS,
  credential,
  ISSUER,
  issued,
  issuedAsWritten,
  NOW,
  newKeys,
  RECORD,
} from "../signing/issuing.ts";

const HOST = "relay.example:8443";
const KEYS: KnownKeys = {
  ring: KeyRing.from(KeysFile.parse({ issuers: [RECORD] })),
  hosts: new Set([HOST, "other.example"]),
};
const AGENT_KEY = signingKeyOf(AGENT);

function signingKeyOf({ privateKey }: typeof AGENT): SigningKey {
  const seed = Buffer.from(privateKey.export({ format: "jwk" }).d as string, "base64url");
  return { alg: "ed25519", privateKey: privateKeyOfSeed(seed) };
}

interface Changes {
  readonly payload?: object;
  readonly [name: string]: unknown;
}

async function register({ payload, ...changes }: Changes = {}, key = AGENT_KEY) {
  const envelope = {
    id: "env-1",
    type: "agent.register",
    from: "agent://acme.bob",
    payload: { credential: await issued(), relay: HOST, ...payload },
    ts: NOW,
    key_id: `jkt-${AGENT.thumbprint}`,
    ...changes,
  };
  return JSON.stringify({ ...envelope, sig: sign(key, canonicalText(envelope)) });
}

/** What intake makes of a text, all steps, with both signatures verified. */
function intake(text: string, keys = KEYS, brought?: BroughtKeys) {
  const candidate = checkBeforeSignature(text, keys, NOW, { credentials: brought });
  if (isRefusal(candidate)) return candidate;
  const { entry, canonical, envelope, credential: presented } = candidate;
  if (presented !== undefined && !isIssued(presented)) return invalidCredential("signature", envelope);
  return checkAfterSignature(candidate, verify(entry.key, canonical, envelope.sig));
}

describe("a register with a credential", () => {
  test("is signed by a key that no keys file lists", async () => {
    const result = intake(await register());
    expect(result).toMatchObject({
      kind: "register",
      keyId: `jkt-${AGENT.thumbprint}`,
      credential: { issuer: "acme", agent: "agent://acme.bob", expiresAt: CLAIMS.exp * 1000 },
    });
  });

  test("is told, where its credential was revoked, before when and when it was issued", async () => {
    const before = new Date(CLAIMS.iat * 1000 + 1).toISOString();
    const revoked = { ...RECORD, revoked: [{ agent: "*", issued_before: before }] };
    const ring = KeyRing.from(KeysFile.parse({ issuers: [revoked] }));
    expect(intake(await register(), { ...KEYS, ring })).toMatchObject({
      code: "invalid_credential",
      detail: expect.stringMatching(/^revoked: /),
      hint: expect.stringContaining(`before ${before}; this one was at ${new Date(CLAIMS.iat * 1000).toISOString()}.`),
    });
  });

  test("may be meant for the relay's names alone", async () => {
    const credentialFor = (...aud: string[]) => issued({ aud });
    expect(
      intake(await register({ payload: { credential: await credentialFor("a.example", HOST) } })),
    ).not.toHaveProperty("code");
    expect(intake(await register({ payload: { credential: await credentialFor("other.example") } }))).toMatchObject({
      code: "invalid_credential",
      detail: expect.stringMatching(/^wrong_relay\b/),
    });
  });

  const [header = "", , signature = ""] = issuedAsWritten("{}", "{}").split(".");
  const REFUSED: Readonly<Record<string, [string, () => Promise<Changes>]>> = {
    "that is no token": ["malformed", async () => ({ payload: { credential: 7 } })],
    "without a key": ["malformed", async () => ({ payload: { credential: `${header}.e30.${signature}` } })],
    "of an issuer that the relay does not know": [
      "unknown_issuer",
      async () => ({ payload: { credential: await issued({ iss: "other" }) } }),
    ],
    "whose issuer signed something else": [
      "signature",
      async () => ({ payload: { credential: await issued({}, {}, newKeys()) } }),
    ],
    "that has ended": [
      "expired",
      async () => ({ payload: { credential: await issued({ iat: CLAIMS.iat - 60, exp: CLAIMS.iat }) } }),
    ],
    "that has not begun": [
      "not_yet_valid",
      async () => ({ payload: { credential: await issued({ nbf: CLAIMS.iat + 61 }) } }),
    ],
    "for an agent that its issuer does not have": [
      "agent_not_allowed",
      async () => ({ payload: { credential: await issued({ sub: "agent://eve" }) } }),
    ],
    "for another key": ["key_mismatch", async () => ({ key_id: `jkt-${ISSUER.thumbprint}` })],
    "sent to another relay": ["wrong_relay", async () => ({ payload: { relay: "evil.example" } })],
    "that does not say to which relay": ["wrong_relay", async () => ({ payload: { relay: undefined } })],
  };

  test.each(Object.entries(REFUSED))("%s is refused with its reason", async (_, [reason, changes]) => {
    const { id, ...rest } = { id: "env-1", ...(await changes()) };
    expect(intake(await register(rest))).toMatchObject({
      code: "invalid_credential",
      envelopeId: id,
      detail: expect.stringMatching(new RegExp(`^${reason}\\b`)),
    });
  });

  test("says that payload.relay is missing where a register has none, and which names the relay has", async () => {
    expect(intake(await register({ payload: { relay: undefined } }))).toMatchObject({
      detail: "wrong_relay: payload.relay is missing.",
      hint: expect.stringMatching(/^Set payload\.relay .* This relay is /),
    });
  });

  test("is refused when its signature is not that of the credential's key", async () => {
    expect(intake(await register({}, signingKeyOf(newKeys())))).toMatchObject({ code: "bad_signature" });
  });

  test("is refused for another agent than the credential's", async () => {
    expect(intake(await register({ from: "agent://acme.eve" }))).toMatchObject({ code: "key_not_allowed" });
  });

  test("is not looked at when its time or its form is wrong", async () => {
    const malformed = { payload: { credential: "x" } };
    expect(intake(await register({ ...malformed, ts: NOW - 300_001 }))).toMatchObject({ code: "clock_skew" });
    expect(intake(await register({ payload: { label: 7 } }))).toMatchObject({ code: "invalid_envelope" });
  });

  test("under the key of the keys file is a register like any other", async () => {
    const text = await register({ key_id: "listed" });
    expect(intake(text)).toMatchObject({ code: "unknown_key" });
  });
});

describe("the key of a credential", () => {
  const message = {
    type: "message.send",
    to: "agent://acme.eve",
    payload: { credential: undefined, relay: undefined },
  };

  test("is unknown before a register under it was accepted", async () => {
    expect(intake(await register(message))).toMatchObject({ code: "unknown_key" });
    expect(intake(await register({ type: "agent.heartbeat" }))).toMatchObject({ code: "unknown_key" });
  });

  test("has a hint of its own for a register that brings no credential", async () => {
    const refusal = intake(await register({ payload: { credential: undefined } }));
    expect(refusal).toMatchObject({ code: "unknown_key", hint: expect.stringContaining("payload.credential") });
    expect(intake(await register(message))).not.toHaveProperty("hint");
  });

  test("signs for its agent, and for no other, once its connection knows it", async () => {
    const entry = entryOfCredential(await credential());
    const brought: BroughtKeys = { keyOf: (keyId) => (keyId === entry.keyId ? entry : undefined) };
    expect(intake(await register(message), KEYS, brought)).toMatchObject({ kind: "message", credential: undefined });
    expect(intake(await register({ ...message, from: "agent://acme.eve" }), KEYS, brought)).toMatchObject({
      code: "key_not_allowed",
    });
  });
});
