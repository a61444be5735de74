import type { AgentKey } from "../types.ts";
import { Failure } from "./failure.ts";
import type { Io } from "./io.ts";
import { type Credentials, credentialsOf, permissionWarning, readKeyFile } from "./key-file.ts";
import type { Reporter } from "./reporter.ts";

/** Who a command acts as. */
export interface Identity {
  readonly agent: string;
  /** Undefined when the environment names only the agent: enough to send with an API key. */
  readonly key: AgentKey | undefined;
}

/** Environment variables that hold secrets: the programs of `--exec` do not get them. */
export const SECRET_VARIABLES: readonly string[] = ["RELAY_PRIVATE_KEY", "RELAY_SECRET", "RELAY_API_KEY"];

/**
 * The agent and its key: from the file of `--key` or RELAY_KEY_FILE, else from the environment alone.
 * @throws {Failure} `invalid_key`.
 */
export async function readIdentity(
  keyOption: string | undefined,
  env: Io["env"],
  reporter: Reporter,
): Promise<Identity> {
  const file = keyOption ?? (env.RELAY_KEY_FILE || undefined);
  if (file === undefined) return await fromEnvironment(env);
  const credentials = await readKeyFile(file);
  const warning = await permissionWarning(file);
  if (warning !== undefined) reporter.warn(warning);
  return credentials;
}

/** @throws {Failure} `invalid_key` when there is no key. */
export function requireCredentials({ agent, key }: Identity): Credentials {
  if (key === undefined) throw noKey();
  return { agent, key };
}

async function fromEnvironment(env: Io["env"]): Promise<Identity> {
  const { RELAY_AGENT: agent, RELAY_KEY_ID: key_id, RELAY_PRIVATE_KEY: private_key, RELAY_SECRET: secret } = env;
  if (!agent) throw noKey();
  if (!private_key && !secret) return { agent, key: undefined };
  const alg = env.RELAY_KEY_ALG || (private_key ? "ed25519" : "hmac-sha256");
  return await credentialsOf(
    { agent_id: agent, key_id: key_id || undefined, alg, private_key, secret },
    "The environment",
  );
}

function noKey(): Failure {
  return new Failure(
    "invalid_key",
    "No key was given.",
    "Name a key file with --key or RELAY_KEY_FILE. Make one with: relay keygen --agent agent://<name>",
  );
}
