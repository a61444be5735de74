import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import * as HPKE from "hpke";
import { calculateJwkThumbprint, type JWK, SignJWT } from "jose";
import { sessionIdOf } from "relay-window/acceptance/acceptance.ts";
import { canonical, type Frame, jcs } from "../support/agent.ts";

/** What agents with credentials send and keep, made without any code of the relay or of the connector. */

const SUITE = new HPKE.CipherSuite(HPKE.KEM_DHKEM_X25519_HKDF_SHA256, HPKE.KDF_HKDF_SHA256, HPKE.AEAD_AES_128_GCM);
const INFO = Buffer.from("agent-relay sealed payload v1");

export interface Key {
  readonly privateKey: KeyObject;
  /** The public key as a JWK. */
  readonly jwk: JWK;
  /** RFC 7638. */
  readonly thumbprint: string;
}

export async function newKey(curve: "ed25519" | "x25519" = "ed25519"): Promise<Key> {
  const { privateKey, publicKey } =
    curve === "ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("x25519");
  const jwk = publicKey.export({ format: "jwk" }) as JWK;
  return { privateKey, jwk, thumbprint: await calculateJwkThumbprint(jwk) };
}

export interface Issuer {
  readonly key: Key;
  readonly record: { issuer: string; keys: object[]; agents: string[]; revoked: object[] };
}

export async function newIssuer(issuer: string, ...agents: string[]): Promise<Issuer> {
  const key = await newKey();
  return { key, record: { issuer, keys: [{ public_key: key.jwk.x }], agents, revoked: [] } };
}

export interface Agent {
  readonly id: string;
  readonly key: Key;
  readonly sealing: Key;
  readonly token: string;
}

/** An agent with a credential of the issuer for an hour around now. */
export async function newAgent(issuer: Issuer, id: string, claims: object = {}, header: object = {}): Promise<Agent> {
  const [key, sealing] = [await newKey(), await newKey("x25519")];
  const iat = Math.floor(Date.now() / 1000) - 60;
  const own = { iss: issuer.record.issuer, sub: id, cnf: { jwk: key.jwk }, enc: { jwk: sealing.jwk } };
  const token = await new SignJWT({ ...own, iat, exp: iat + 3600, ...claims })
    .setProtectedHeader({ alg: "Ed25519", typ: "relay-credential+jwt", kid: issuer.key.thumbprint, ...header })
    .sign(issuer.key.privateKey);
  return { id, key, sealing, token };
}

/** An envelope as it is delivered. */
export function envelope(from: Agent, to: Agent, type: string, payload: object, fields: object = {}): Frame {
  const members = { id: randomUUID(), type, from: from.id, to: to.id, payload, ts: Date.now() };
  return resigned(from, { ...members, key_id: `jkt-${from.key.thumbprint}`, ...fields });
}

/** The envelope with another signature, by the agent's key. */
export function resigned(by: Agent, { sig: _, ...unsigned }: Frame): Frame {
  return { ...unsigned, sig: sign(null, Buffer.from(canonical(unsigned)), by.key.privateKey).toString("base64url") };
}

/** A message whose payload is sealed to the recipient, for whatever text the payload has. */
export async function sealed(from: Agent, to: Agent, text: string, fields: object = {}): Promise<Frame> {
  const { sig: _, ...outer } = envelope(from, to, "message.send", {}, { task_id: "t-1", ...fields });
  const kid = to.sealing.thumbprint;
  const { id, type, task_id } = outer;
  const aad = Buffer.from(jcs({ from: from.id, id, kid, task_id, to: to.id, type, v: 1 }));
  const recipient = await SUITE.DeserializePublicKey(Buffer.from(to.sealing.jwk.x as string, "base64url"));
  const made = await SUITE.Seal(recipient, Buffer.from(text), { aad, info: INFO });
  const [enc, ct] = [made.encapsulatedSecret, made.ciphertext].map((bytes) => Buffer.from(bytes).toString("base64url"));
  return resigned(from, { ...outer, payload: { sealed: { v: 1, kid, enc, ct } } });
}

export interface Receipt {
  readonly version: number;
  readonly request: Frame;
  readonly decision: Frame;
  readonly credentials: readonly string[];
}

/** A receipt of a session that `asker` requested and `decider` approved a second later. */
export function receipt(asker: Agent, decider: Agent, changes: { request?: object; decision?: object } = {}): Receipt {
  const payload = { purpose: "talk", ttl_minutes: 5 };
  const request = envelope(asker, decider, "session.request", payload, changes.request);
  const request_sha256 = requestDigest(request);
  const decided = { session_id: sessionOf(request), request_sha256 };
  const fields = { ts: request.ts + 1000, ...changes.decision };
  const decision = envelope(decider, asker, "session.approve", decided, fields);
  return { version: 1, request, decision, credentials: [asker.token, decider.token] };
}

export function requestDigest(request: Frame): string {
  return createHash("sha256").update(signedText(request)).digest("base64url");
}

/** The id that a relay gives to the session of a request. */
export function sessionOf(request: Frame): string {
  return sessionIdOf(signedText(request), 0);
}

function signedText({ sig, ...envelope }: Frame): string {
  return `${canonical(envelope).slice(0, -1)},"sig":${JSON.stringify(sig)}}`;
}
