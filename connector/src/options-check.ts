import { AGENT_ID } from "./agent-id.ts";
import type { ConnectorOptions } from "./options.ts";

/** Throws a TypeError for options that can never work. */
export function checkOptions({ agent, key, credential, seal }: ConnectorOptions): void {
  if (!AGENT_ID.test(agent)) throw new TypeError("agent must be agent:// and a name");
  if (key.keyId === undefined && credential === undefined) throw new TypeError("key needs a keyId, or a credential");
  if (seal === "required" && key.alg !== "ed25519") throw new TypeError("seal needs an Ed25519 key");
}
