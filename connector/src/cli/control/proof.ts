import { randomBytes } from "node:crypto";
import { decodeBase64url, encodeBase64url } from "../../base64url.ts";
import { ALGORITHMS, importSigningKey, importVerifyKey, type VerifyKey } from "../../keys.ts";
import type { AgentKey } from "../../types.ts";
import type { SigningAgent } from "../key-file.ts";
import { okpKeyOf } from "../okp-keys.ts";

/**
 * The proof that whoever uses an agent's control socket has the agent's key: a signature over a challenge that is used once.
 * Without it, a program of the same user that may reach the socket, but not the key file, would be the agent.
 */

/** Of the lines of the control socket: both ends have the same. */
export const CONTROL_VERSION = 2;

const CHALLENGE_BYTES = 32;

export function newChallenge(): string {
  return randomBytes(CHALLENGE_BYTES).toString("base64url");
}

/** @param socket the name of the socket's file: what one holder is shown is no proof to another. */
export async function proofOf(signing: SigningAgent, socket: string, challenge: string): Promise<string> {
  const key = await presentKeyOf(signing);
  const text = provenText(signing.agent, socket, challenge);
  return encodeBase64url(
    new Uint8Array(await crypto.subtle.sign(ALGORITHMS[key.alg], await importSigningKey(key), text)),
  );
}

/** Whether it was made with the key that the holder runs under, or with the one that its key file has by now. */
export async function isProof(
  signing: SigningAgent,
  socket: string,
  challenge: string,
  proof: string,
): Promise<boolean> {
  const sig = decodeBase64url(proof);
  if (sig === undefined) return false;
  const text = provenText(signing.agent, socket, challenge);
  for (const own of [signing.key, await presentKeyOf(signing)]) {
    const { alg, key } = await verifyKeyOf(own);
    if (await crypto.subtle.verify(ALGORITHMS[alg], key, sig, text)) return true;
  }
  return false;
}

/** Begins as no envelope, no token and no other text does that the key signs. */
function provenText(agent: string, socket: string, challenge: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(
    `agent-relay: control socket ${CONTROL_VERSION}\n${agent}\n${socket}\n${challenge}`,
  ) as Uint8Array<ArrayBuffer>;
}

/** A credential may have come with another key since the start. A file that cannot be read now leaves the former. */
async function presentKeyOf({ key, credential }: SigningAgent): Promise<AgentKey> {
  const present = await credential?.().catch(() => undefined);
  return present?.key ?? key;
}

async function verifyKeyOf(key: AgentKey): Promise<VerifyKey> {
  const { alg, keyId = "" } = key;
  if (alg === "hmac-sha256") return await importVerifyKey({ keyId, alg, secret: key.secret as string });
  return await importVerifyKey({ keyId, alg, publicKey: okpKeyOf("Ed25519", key.privateKey)?.publicKey ?? "" });
}
