import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { textIn } from "relay-runtime/files.ts";
import { z } from "zod";
import { type AgentKeyFile, type AgentKeys, newAgentKeys } from "../keys/issue.ts";
import { okpKeyOf } from "../keys/make.ts";

/** The agents that `npm start` makes keys for. */

export const NAMES = ["alice", "bob"] as const;
export type Name = (typeof NAMES)[number];

export const AGENTS = { alice: "agent://alice", bob: "agent://bob" } as const;

/** An agent's key file. One whose key the relay lists has no credential. */
export type DevelopmentAgent = Omit<AgentKeyFile, "credential" | "trusted_issuers"> & Partial<AgentKeyFile>;

/** The agents' key files, and an API key for the gateway, from agent://alice or agent://alice.*. */
export type DevelopmentAgents = { readonly api_key: string } & Readonly<Record<Name, DevelopmentAgent>>;

/** What is kept from start to start. */
export type DevelopmentSecrets = { readonly api_key: string } & Readonly<Record<Name, AgentKeys>>;

const privateKey = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const StoredAgent = z
  .object({ alg: z.literal("ed25519"), private_key: privateKey, sealing_key: privateKey })
  .transform(({ private_key, sealing_key }) => ({
    signing: okpKeyOf("Ed25519", private_key),
    sealing: okpKeyOf("X25519", sealing_key),
  }));
const StoredSecrets = z.object({ api_key: z.string(), alice: StoredAgent, bob: StoredAgent });

/** The file with all secrets. */
export function developmentAgentsFile(folder: string): string {
  return join(folder, "dev-agents.json");
}

/** The key file of one agent, for `relay --key`; a part of the file above. */
export function developmentKeyFile(folder: string, name: Name): string {
  return join(folder, `${name}.json`);
}

/** Undefined where there are none, or only those of an older version, whose agents had other keys. */
export async function storedSecrets(folder: string): Promise<DevelopmentSecrets | undefined> {
  const file = developmentAgentsFile(folder);
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return undefined;
  });
  return bytes && StoredSecrets.safeParse(JSON.parse(textIn(bytes, file))).data;
}

export function newSecrets(apiKey: string): DevelopmentSecrets {
  return { api_key: apiKey, alice: newAgentKeys(), bob: newAgentKeys() };
}
