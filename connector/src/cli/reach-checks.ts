import { knownRetry } from "../errors.ts";
import { membersOf, textOf } from "../frames.ts";
import { MANIFEST } from "../limits.ts";
import { proxyFor, shownProxy, targetOf } from "../platform/proxy.ts";
import { saidText, shownText } from "../said-text.ts";
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

/** Which proxy leads to each address of the relay. Without one, or with one that cannot be used, undefined. */
export function proxiesOf({ baseUrl, websocketUrl }: RelayHttp): string | undefined {
  const targets = [baseUrl, websocketUrl].map((address) => targetOf(new URL(address)));
  try {
    const ways = targets.flatMap((target) => {
      const proxy = proxyFor(target, process.env);
      return proxy ? [`connections to ${target.place} go through ${shownProxy(proxy)}`] : [];
    });
    return ways.length === 0 ? undefined : [...new Set(ways)].join("; ");
  } catch {
    return undefined;
  }
}

/** What the relay's documents say of its address, where that is another one than was dialled. Undefined where they cannot be read. */
export async function otherAddress(http: RelayHttp): Promise<string | undefined> {
  const { body } = await http.request(MANIFEST.path);
  const named = textOf(membersOf(body.self_test).url);
  const isOther = named && URL.canParse(named) && !new URL(named).href.startsWith(new URL(`${http.baseUrl}/`).href);
  if (!isOther) return undefined;
  const base = shownText(named.replace(/\/api\/self-test$/, ""));
  return `its documents name ${base}. If clients cannot use that address, the operator should set RELAY_BASE_URL=${http.baseUrl}`;
}

export async function checkReachable(http: RelayHttp): Promise<string> {
  await http.get("/health");
  return `the relay answers at ${http.baseUrl}`;
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
