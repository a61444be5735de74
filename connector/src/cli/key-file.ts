import { createPrivateKey, createPublicKey } from "node:crypto";
import { open, readFile, stat } from "node:fs/promises";
import { AGENT_ID } from "../agent-id.ts";
import { membersOf, textOf } from "../frames.ts";
import { importSigningKey, pkcs8Of } from "../keys.ts";
import { parseJson } from "../parse-json.ts";
import type { AgentKey } from "../types.ts";
import { Failure } from "./failure.ts";

/** The content of a key file, as `relay keygen` writes it: one JSON object, mode 0600. */
export type KeyRecord = { readonly agent_id: string; readonly key_id: string } & (
  | { readonly alg: "ed25519" /** base64url, the 32-byte seed. */; readonly private_key: string }
  | { readonly alg: "hmac-sha256" /** base64url, at least 32 bytes. */; readonly secret: string }
);

/** An agent and the key that it signs with. */
export interface Credentials {
  readonly agent: string;
  readonly key: AgentKey;
}

/** @throws {Failure} `invalid_key`, with what is wrong with the file. */
export async function readKeyFile(file: string): Promise<Credentials> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw invalid(`The key file cannot be read (${error.code}).`);
  });
  let record: unknown;
  try {
    record = parseJson(text);
  } catch {
    // The parser's own message would quote the text.
    throw invalid("The key file is not JSON.");
  }
  return await credentialsOf(record, "The key file");
}

/** @param origin what the record was read from, at the beginning of a sentence. @throws {Failure} `invalid_key`. */
export async function credentialsOf(record: unknown, origin: string): Promise<Credentials> {
  const { agent_id, key_id, alg, private_key, secret } = membersOf(record);
  const [agent, keyId] = [textOf(agent_id), textOf(key_id)];
  if (agent === undefined || !AGENT_ID.test(agent))
    throw invalid(`${origin} has no valid agent_id, such as agent://alice.`);
  if (keyId === undefined) throw invalid(`${origin} has no key_id.`);
  const key = keyOf(keyId, alg, textOf(private_key), textOf(secret));
  if (key === undefined) {
    throw invalid(`${origin} has neither alg "ed25519" with a private_key nor alg "hmac-sha256" with a secret.`);
  }
  await importSigningKey(key);
  return { agent, key };
}

function keyOf(keyId: string, alg: unknown, privateKey?: string, secret?: string): AgentKey | undefined {
  if (alg === "ed25519" && privateKey !== undefined) return { keyId, alg, privateKey };
  if (alg === "hmac-sha256" && secret !== undefined) return { keyId, alg, secret };
  return undefined;
}

/** The public half, base64url, of an Ed25519 seed that `readKeyFile` has accepted. */
export function publicKeyOf(seed: string): string {
  const key = createPrivateKey({ key: Buffer.from(pkcs8Of(seed)), format: "der", type: "pkcs8" });
  return String(createPublicKey(key).export({ format: "jwk" }).x);
}

/** A warning about a file that users other than its owner may read; undefined for a private one. */
export async function permissionWarning(file: string): Promise<string | undefined> {
  const isShared = process.platform !== "win32" && ((await stat(file)).mode & 0o077) !== 0;
  return isShared ? `Other users can read the key file. Run: chmod 600 ${file}` : undefined;
}

/** Writes a file that only its owner may read. @throws {Failure} when the file exists: a key is never overwritten. */
export async function writePrivateFile(file: string, value: object): Promise<void> {
  const handle = await open(file, "wx", 0o600).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST")
      throw new Failure("failed", `${file} cannot be written (${error.code}).`, "Choose another --out.");
    throw new Failure("failed", `${file} exists already; it was not changed.`, await hintOfTaken(file));
  });
  try {
    await handle.writeFile(`${JSON.stringify(value, null, 2)}\n`);
  } finally {
    await handle.close();
  }
}

/** A shell that writes standard output to the key file itself has emptied it before the command began. */
async function hintOfTaken(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size > 0) {
    return "Choose another name with --out, or move the old file away. A file that standard output was sent to is empty now: relay keygen with the agent and the file of a key prints its record again.";
  }
  return "It is empty: was standard output sent to it? That is for the public record, under another name. Remove the empty file.";
}

function invalid(message: string): Failure {
  return new Failure("invalid_key", message, "relay keygen --help shows what a key file looks like.");
}
