import { Failure } from "./failure.ts";
import type { Io } from "./io.ts";
import { readKeyFile, type SigningAgent, signingAgentOf } from "./key-file.ts";
import { permissionWarning } from "./private-file.ts";
import type { Reporter } from "./reporter.ts";

/** Who a command acts as. */
export interface Identity {
  readonly agent: string;
  /** Undefined when the environment names only the agent: enough to send with an API key. */
  readonly signing: SigningAgent | undefined;
}

/** Environment variables that hold secrets: the programs of `--exec` do not get them. */
export const SECRET_VARIABLES: readonly string[] = [
  "RELAY_PRIVATE_KEY",
  "RELAY_SECRET",
  "RELAY_API_KEY",
  "RELAY_MCP_TOKEN",
];

/**
 * The agent and its key: from the file of `--key` or RELAY_KEY_FILE, else from the environment alone.
 * @throws {Failure} `invalid_key`, `invalid_credential`.
 */
export async function readIdentity(
  keyOption: string | undefined,
  env: Io["env"],
  reporter: Reporter,
): Promise<Identity> {
  const file = keyFileOf(keyOption, env);
  if (file === undefined) return await fromEnvironment(env);
  const signing = await readKeyFile(file);
  const warning = await permissionWarning(file);
  if (warning !== undefined) reporter.warnOnce(warning);
  return { agent: signing.agent, signing };
}

/** Undefined where the environment alone says who acts. */
export function keyFileOf(keyOption: string | undefined, env: Io["env"]): string | undefined {
  return keyOption ?? (env.RELAY_KEY_FILE || undefined);
}

/** @throws {Failure} `invalid_key` when there is no key. */
export function requireKey({ signing }: Identity): SigningAgent {
  if (signing === undefined) throw noKey();
  return signing;
}

async function fromEnvironment(env: Io["env"]): Promise<Identity> {
  const { RELAY_AGENT: agent, RELAY_KEY_ID: key_id, RELAY_PRIVATE_KEY: private_key, RELAY_SECRET: secret } = env;
  if (!agent && env.RELAY_API_KEY) throw noAgent();
  if (!agent) throw noKey();
  if (!private_key && !secret) return { agent, signing: undefined };
  const alg = env.RELAY_KEY_ALG || (private_key ? "ed25519" : "hmac-sha256");
  const record = { agent_id: agent, key_id: key_id || undefined, alg, private_key, secret };
  return { agent, signing: await signingAgentOf(record, "The environment") };
}

function noKey(): Failure {
  return new Failure(
    "invalid_key",
    "No key was given.",
    "Name a key file with --key or RELAY_KEY_FILE. Make one with: relay keygen --agent agent://<name>",
  );
}

function noAgent(): Failure {
  return new Failure(
    "invalid_key",
    "RELAY_API_KEY is set, and no agent to send as.",
    "Set RELAY_AGENT=agent://<name> to an agent that the API key may act for, or name a key file.",
  );
}
