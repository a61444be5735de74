import { AgentHolders } from "../credentials/agent-holders.ts";
import { ISSUER } from "../credentials/contract.ts";
import type { IssuerKeyPair } from "../credentials/issuing.ts";
import { membersOf, textOf } from "../frames.ts";
import { Failure } from "./failure.ts";
import { jsonOf, readText } from "./files.ts";
import type { Input } from "./io.ts";
import { okpKeyOf } from "./okp-keys.ts";
import { writePrivateFile } from "./private-file.ts";

/** An issuer with its private key, in the form that `npm run keys -- new-issuer` writes too. */
interface IssuerFile {
  readonly issuer: string;
  readonly alg: "ed25519";
  /** base64url, the 32-byte seed. */
  readonly private_key: string;
  readonly public_key: string;
  /** Those that it speaks for; earlier versions wrote none. */
  readonly agents?: readonly string[];
}

/** An issuer that signs. */
export interface SigningIssuer extends IssuerKeyPair {
  /** Undefined where its file does not say. */
  readonly agents: readonly string[] | undefined;
}

export async function writeIssuerFile(
  file: string,
  { issuer, privateKey, publicKey }: IssuerKeyPair,
  agents: readonly string[],
): Promise<void> {
  const content: IssuerFile = { issuer, alg: "ed25519", private_key: privateKey, public_key: publicKey, agents };
  await writePrivateFile(file, content);
}

/** Whether patterns of agents include one. */
export function speakFor(agents: readonly string[], agent: string): boolean {
  return new AgentHolders([{ issuer: "it", keys: [], agents }]).holderOf(agent) !== undefined;
}

/** @throws {Failure} `invalid_key`, which shows nothing of the file. */
export async function readIssuerFile(file: string, io: Input): Promise<SigningIssuer> {
  const members = membersOf(jsonOf(await readText(file, io), () => noIssuer(file)));
  const issuer = textOf(members.issuer);
  const key = okpKeyOf("Ed25519", members.private_key);
  const isWhole = members.alg === "ed25519" && key !== undefined && key.publicKey === members.public_key;
  if (issuer === undefined || !ISSUER.test(issuer) || !isWhole) throw noIssuer(file);
  const agents = Array.isArray(members.agents) ? members.agents.map(String) : undefined;
  return { issuer, ...key, agents };
}

function noIssuer(file: string): Failure {
  return new Failure(
    "invalid_key",
    `${file} is not the private file of an issuer.`,
    "Make one with: relay issuer new --issuer <name>. What it prints is the public record, which cannot sign.",
  );
}
