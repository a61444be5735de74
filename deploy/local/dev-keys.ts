import { chmod, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { makeApiKey, makeEd25519Key, makeHmacKey } from "../keys/make.ts";
import { editKeys, replaceFile } from "../keys/store.ts";
import { withLock } from "./lock-file.mjs";

/** Where `npm start` keeps its development keys; not in git. */
export const DEVELOPMENT_FOLDER = fileURLToPath(new URL("../../.local", import.meta.url));
const LOCK_TIMEOUT_MS = 10_000;

const ALICE = "agent://alice";
const BOB = "agent://bob";
const API_KEY_ID = "dev-alice-gateway";
const ALICE_KEY_ID = "dev-alice";
const BOB_KEY_ID = "dev-bob";

/** The secrets of the development keys, in the form that their agents use. */
const DevelopmentAgents = z.strictObject({
  /** For the gateway, from agent://alice or agent://alice.*. */
  api_key: z.string(),
  /** private_key: base64url, the Ed25519 seed. */
  alice: z.strictObject({
    agent_id: z.literal(ALICE),
    key_id: z.string(),
    alg: z.literal("ed25519"),
    private_key: z.string(),
  }),
  /** secret: base64url, the HMAC key. */
  bob: z.strictObject({
    agent_id: z.literal(BOB),
    key_id: z.string(),
    alg: z.literal("hmac-sha256"),
    secret: z.string(),
  }),
});
export type DevelopmentAgents = z.infer<typeof DevelopmentAgents>;

/** The keys file of a development folder. */
export function developmentKeysFile(folder: string): string {
  return join(folder, "keys.json");
}

/** The file with the secrets. */
export function developmentAgentsFile(folder: string): string {
  return join(folder, "dev-agents.json");
}

/** The key file of one agent, for `relay --key`; made from the file above. */
export function developmentKeyFile(folder: string, name: "alice" | "bob"): string {
  return join(folder, `${name}.json`);
}

/**
 * The development keys of `npm start`, made at the first start. Folder 0700, files 0600. Keys that `npm run keys` added to
 * the same file stay.
 */
export async function developmentKeys(folder: string): Promise<DevelopmentAgents> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o700);
  return await withLock(join(folder, "dev-keys.lock"), LOCK_TIMEOUT_MS, async () => {
    const agents = (await existing(folder)) ?? (await make(folder));
    await replaceFile(developmentKeyFile(folder, "alice"), textOf(agents.alice));
    await replaceFile(developmentKeyFile(folder, "bob"), textOf(agents.bob));
    return agents;
  });
}

async function existing(folder: string): Promise<DevelopmentAgents | undefined> {
  try {
    const agents = DevelopmentAgents.parse(JSON.parse(await readFile(developmentAgentsFile(folder), "utf8")));
    await readFile(developmentKeysFile(folder));
    return agents;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function make(folder: string): Promise<DevelopmentAgents> {
  const apiKey = makeApiKey({ id: API_KEY_ID, agents: [ALICE, `${ALICE}.*`] });
  const alice = makeEd25519Key({ id: ALICE_KEY_ID, agents: [ALICE] });
  const bob = makeHmacKey({ id: BOB_KEY_ID, agents: [BOB] });
  await editKeys(developmentKeysFile(folder), (keys) => ({
    ...keys,
    api_keys: [...keys.api_keys.filter(({ id }) => id !== API_KEY_ID), apiKey.record],
    signing_keys: [
      ...keys.signing_keys.filter(({ key_id }) => key_id !== ALICE_KEY_ID && key_id !== BOB_KEY_ID),
      alice.record,
      bob.record,
    ],
  }));

  const agents: DevelopmentAgents = {
    api_key: apiKey.apiKey,
    alice: { agent_id: ALICE, key_id: ALICE_KEY_ID, alg: "ed25519", private_key: alice.privateKey },
    bob: { agent_id: BOB, key_id: BOB_KEY_ID, alg: "hmac-sha256", secret: bob.secret },
  };
  await replaceFile(developmentAgentsFile(folder), textOf(agents));
  return agents;
}

function textOf(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
