import { isAcceptFrom } from "./accept-from.ts";
import { agentIdProblem } from "./agent-id.ts";
import { MAX_DELIVERY_AGE_MS } from "./limits.ts";
import type { ConnectorOptions } from "./options.ts";

/** Throws a TypeError for options that can never work. */
export function checkOptions(options: ConnectorOptions): void {
  const { agent, key, credential, seal, sealingKeys = [], maxDeliveryAgeMs = MAX_DELIVERY_AGE_MS } = options;
  const { startTimeoutMs, acceptFrom = [], proxy = true } = options;
  const problem = agentIdProblem(agent);
  if (problem !== undefined) throw new TypeError(`agent ${problem}`);
  if (typeof key !== "object" || key === null) {
    throw new TypeError(
      "key must be { keyId, alg, privateKey }, or what readKeyFile(path) of agent-relay-connector/key-file gives",
    );
  }
  if ("private_key" in key || "agent_id" in key) {
    throw new TypeError(
      "key is what a key file holds: give ...(await readKeyFile(path)) of agent-relay-connector/key-file",
    );
  }
  if (!Array.isArray(sealingKeys)) throw new TypeError("sealingKeys must be a list of { publicKey, privateKey }");
  if (!isAcceptFrom(acceptFrom)) {
    throw new TypeError("acceptFrom must be a list of at most 50 agent ids, agent://<prefix>.*, or issuer:<name>");
  }
  if (key.keyId === undefined && credential === undefined) throw new TypeError("key needs a keyId, or a credential");
  if (typeof proxy !== "boolean") throw new TypeError("proxy must be true or false: the environment names the proxy");
  if (startTimeoutMs !== undefined && !(startTimeoutMs > 0)) throw new TypeError("startTimeoutMs must be more than 0");
  // Of NaN neither is true.
  if (!(maxDeliveryAgeMs >= 0)) throw new TypeError("maxDeliveryAgeMs must be 0 or more");
  if (seal === "required" && key.alg !== "ed25519") throw new TypeError("seal needs an Ed25519 key");
}
