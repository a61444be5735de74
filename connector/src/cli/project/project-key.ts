import { basename, isAbsolute, relative, resolve, sep } from "node:path";
import { AGENT_ID, AGENT_SCHEME } from "../../agent-id.ts";
import type { IssuerRecord } from "../../credentials/issuer-record.ts";
import { newAgentKey, newKeyId, type PublicRecord } from "../agent-key.ts";
import { agentMissing } from "../arguments.ts";
import { usageError } from "../failure.ts";
import { type KeyRecord, readKeyFile } from "../key-file.ts";

/** Of a key that is made for a project. */
const KEY_FILE = "key.json";
/** Its public half. */
export const RECORD_FILE = "record.json";

/** The agent of a project, and the key that it acts with. */
export interface ProjectKey {
  readonly agent: string;
  /** Path of its key file, from the project's folder on. */
  readonly path: string;
  /** The line of .gitignore that covers it; empty where it lies outside the folder. */
  readonly ignored: string;
  /** What its author has to know of it. */
  readonly about: string;
  /** What is to be written for a key that was made. */
  readonly made?: { readonly file: KeyRecord; readonly record: PublicRecord };
}

/** A new key. @param trusted the issuers that its file pins. @throws {Failure} `usage`. */
export function newProjectKey(agent: string, trusted: readonly IssuerRecord[]): ProjectKey {
  const { file, record } = newAgentKey(agent, newKeyId(agent));
  return {
    agent,
    path: KEY_FILE,
    ignored: ignoring(KEY_FILE),
    about: `${KEY_FILE} is its private key, which git ignores. ${RECORD_FILE} is public: the relay's operator adds it, or an issuer signs for it.`,
    made: { file: trusted.length > 0 ? { ...file, trusted_issuers: trusted } : file, record },
  };
}

/** The agent that is named, or else that of the folder's name. @throws {Failure} `usage`. */
export function newProjectAgent(folder: string, agent = AGENT_SCHEME + basename(resolve(folder))): string {
  if (AGENT_ID.test(agent)) return agent;
  throw usageError(agentMissing(agent));
}

/** The key of a file that is there. @throws {Failure} `usage` when it is another agent's, or as readKeyFile does. */
export async function givenProjectKey(folder: string, file: string, agent?: string): Promise<ProjectKey> {
  const known = await readKeyFile(file);
  if (agent !== undefined && agent !== known.agent)
    throw usageError("The key is another agent's than --agent.", "Leave out --agent, or --key and RELAY_KEY_FILE.");
  const path = relative(resolve(folder), resolve(file)).split(sep).join("/");
  const isInside = !path.startsWith("../") && !isAbsolute(path);
  const ignored = isInside ? ignoring(path) : "";
  return { agent: known.agent, path, ignored, about: `${path} is its private key.` };
}

/** The line of a .gitignore that means this path and no other. */
function ignoring(path: string): string {
  return `/${path.replace(/[\\*?[\]#! ]/g, "\\$&")}`;
}
