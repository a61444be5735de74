import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { calculateJwkThumbprint, type JWTPayload, SignJWT } from "jose";
import { type AgentKey, type Fields, type Frame, signed } from "./agent.ts";

/** Issuers and their credentials as an outside author would make them: `node:crypto` and `jose`, nothing of the relay's own. */

export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** An agent with a credential: whose key stands in no keys file. */
export interface CredentialAgent {
  readonly id: string;
  readonly key: AgentKey;
  readonly credential: string;
}

/** Seconds that a credential lives, unless a test says otherwise. */
const LIFE_SECONDS = 3600;

export class TestIssuer {
  readonly name: string;
  readonly #keys: KeyPair;

  /** @param keys made unless given. */
  constructor(name: string, keys: KeyPair = generateKeyPairSync("ed25519")) {
    this.name = name;
    this.#keys = keys;
  }

  /** Its record in the keys file. */
  record(agents: readonly string[], more: object = {}): object {
    return { issuer: this.name, keys: this.keys(), agents, ...more };
  }

  /** Its keys in such a record. @param term of its one key. */
  keys(term: object = {}): object[] {
    return [{ public_key: xOf(this.#keys.publicKey), ...term }];
  }

  /** An agent with a key of its own. @param terms claims in place of those that hold now for an hour. */
  async agent(id: string, terms: JWTPayload = {}): Promise<CredentialAgent> {
    const keys = generateKeyPairSync("ed25519");
    return await this.#issue(id, keys, terms);
  }

  /** The same agent and key, with another credential. */
  async renewed(agent: CredentialAgent, terms: JWTPayload = {}): Promise<CredentialAgent> {
    return await this.#issue(agent.id, KEYS.get(agent.key) as KeyPair, terms);
  }

  async #issue(id: string, keys: KeyPair, terms: JWTPayload): Promise<CredentialAgent> {
    const kid = await thumbprintOf(this.#keys.publicKey);
    const now = Math.floor(Date.now() / 1000);
    const cnf = { jwk: keys.publicKey.export({ format: "jwk" }) };
    const claims = { iss: this.name, sub: id, cnf, iat: now, exp: now + LIFE_SECONDS, ...terms };
    const credential = await new SignJWT(claims)
      .setProtectedHeader({ alg: "Ed25519", typ: "relay-credential+jwt", kid })
      .sign(this.#keys.privateKey);
    return { id, key: await agentKeyOf(keys), credential };
  }
}

/** A register that presents the credential to the relay of this name. */
export function registerWith({ id, key, credential }: CredentialAgent, relay: string, fields: Fields = {}): Frame {
  return signed(key, { type: "agent.register", from: id, payload: { credential, relay }, ...fields });
}

/** The keys behind the keys that sign, so that an agent's can be issued for again. */
const KEYS = new WeakMap<AgentKey, KeyPair>();

async function agentKeyOf(keys: KeyPair): Promise<AgentKey> {
  const key = {
    keyId: `jkt-${await thumbprintOf(keys.publicKey)}`,
    sign: (text: string) => sign(null, Buffer.from(text), keys.privateKey).toString("base64url"),
  };
  KEYS.set(key, keys);
  return key;
}

async function thumbprintOf(publicKey: KeyObject): Promise<string> {
  return await calculateJwkThumbprint({ kty: "OKP", crv: "Ed25519", x: xOf(publicKey) });
}

function xOf(publicKey: KeyObject): string {
  return publicKey.export({ format: "jwk" }).x as string;
}
