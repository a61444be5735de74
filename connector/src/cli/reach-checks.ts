import { knownRetry } from "../errors.ts";
import { saidText } from "../said-text.ts";
import { Failure } from "./failure.ts";
import type { Answer, RelayHttp } from "./relay-http.ts";

/** The steps of `relay check` about what can be reached: the relay, its Redis, and what it knows of the agent. As those in checks.ts. */

/** What a relay that is ready does without. Source: docs/protocol.md#http. */
const DEGRADATIONS: ReadonlyMap<unknown, string> = new Map([
  ["redis_memory", "its Redis is short of memory, and takes no new sessions and agents"],
  [
    "control_slot",
    "what its Redis Cluster has of the whole window is out of reach, and no service that starts is ready",
  ],
  ["keys_file", "it cannot use its keys file, and goes on with the keys that it read before"],
]);

export async function checkReachable(http: RelayHttp): Promise<string> {
  const { status } = await http.request("/health");
  if (status === 200) return `the relay answers at ${http.baseUrl}`;
  throw new Failure(
    "unreachable",
    `The server at ${http.baseUrl} is not a healthy relay (${status}).`,
    http.addressHint,
  );
}

/** An edge proxy may hide this probe: 404. What is out of reach is no failure here: `checkPresence` tells whether the agent is concerned. */
export async function checkReady(http: RelayHttp): Promise<string> {
  const { status, body } = await http.request("/ready");
  if (status === 200) return ["it is ready", ...lacksOf(body)].join("; ");
  if (status === 404) return "it does not expose its readiness here";
  throw new Failure(
    "unavailable",
    "The relay is up, but not ready.",
    `Try again later, or tell its operator. ${saidText(body.next_action) ?? ""}`.trim(),
    { retry: knownRetry(body.retry) },
  );
}

/** Asks for the agent's presence, which lies where all lies that concerns the agent: on a cluster, another partition may answer. */
export async function checkPresence(agent: string, http: RelayHttp): Promise<string> {
  try {
    const { status } = await http.presence(agent);
    return `the relay reaches what it knows of ${agent}: ${saidText(status) ?? "no status"}`;
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "unavailable") throw error;
    throw new Failure(error.code, error.message, `Tell the relay's operator. ${error.hint}`.trim(), error);
  }
}

/** What a ready relay says that it lacks, in words. */
function lacksOf({ degraded, unavailable_partitions: partitions }: Answer["body"]): string[] {
  const kinds = Array.isArray(degraded) ? degraded : [];
  const lost = Array.isArray(partitions) ? partitions.filter((p) => Number.isSafeInteger(p)) : [];
  const others = kinds.flatMap((kind) => DEGRADATIONS.get(kind) ?? []);
  if (lost.length === 0) return others;
  return [`out of reach: partition ${lost.join(", ")}, whose agents are unavailable while others go on`, ...others];
}
