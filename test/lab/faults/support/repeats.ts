import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { controlKeys } from "relay-window/redis/keys.ts";
import { partitionOf } from "relay-window/redis/partitions.ts";
import { PARTITIONS } from "../../../cluster/support/cluster-relay.ts";
import { HttpClient } from "../../../support/http.ts";
import { acceptancesOf, type Entry, forgotten } from "../../../support/ledger.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";
import { clusterClient } from "../../../support/test-redis.ts";
import { until } from "../../../support/until.ts";
import type { ClusterFleet } from "./cluster-stage.ts";
import type { FleetPod } from "../../fleet.ts";

/** What was accepted shortly before a replica took over, sent once more: the relay takes for new what the replica had not received. */

/** So far back envelopes are repeated: much of it the replica has received. */
const REPEATED_MS = 3000;
/** Enough that some of it is repeated, for half of the agents repeat. */
const LACKING = 20;

/** Resolves when enough was accepted for these agents, since then, that is lost with their primary. */
export async function untilLacking(
  fleet: ClusterFleet,
  agents: readonly ReturningAgent[],
  since: number,
): Promise<void> {
  await until("some of it lacks", () => acceptedFor(fleet, agents, since).length >= LACKING);
}

/** Half of the agents send again what was accepted for these before that time. Resolves with all of it, when it is answered. */
export async function repeatAccepted(
  fleet: ClusterFleet,
  agents: readonly ReturningAgent[],
  before: number,
): Promise<Entry[]> {
  const lately = acceptedFor(fleet, agents, before - REPEATED_MS).filter(
    (entry) => (acceptedAt(entry) ?? before) < before,
  );
  const repeated = new Set(fleet.repeat(new Set(lately.map(({ id }) => id))));
  const entries = lately.filter(({ id }) => repeated.has(id));
  if (entries.length === 0) throw new Error("Nothing was repeated.");
  await until("what was repeated is answered", () => entries.every(isAnsweredAgain));
  return entries;
}

/** A process of the reports that says from now on what may be lacking, and nothing of what was recorded before. */
export async function startReports(fleet: ClusterFleet): Promise<FleetPod> {
  const client = clusterClient(fleet.stage.cluster.adminUrl);
  await client.hset(controlKeys.window, "promoted", "").finally(() => client.disconnect());
  return await fleet.addPod("ops-reporting");
}

/**
 * Resolves when reports say since when something may be lacking of these agents' partitions, and it is no later than what was
 * forgotten of these envelopes. @throws when nothing was: the replica had received everything.
 */
export async function untilReported(
  fleet: ClusterFleet,
  reports: FleetPod,
  agents: readonly ReturningAgent[],
  repeated: readonly Entry[],
): Promise<void> {
  const lost = forgotten({ ...fleet.ledger.content, entries: repeated });
  if (lost.length === 0) throw new Error("The promoted replica has forgotten nothing.");
  const first = performance.timeOrigin + Math.min(...lost.map((entry) => acceptedAt(entry) as number));
  const places = [...new Set(agents.map(({ id }) => partitionOf(id, PARTITIONS)))];
  const http = new HttpClient();
  await until("reports say what may be lacking", async () => {
    const { status, body } = await http.get(reports.url + SURFACES.trafficDaily.path);
    if (status !== 200 || body.complete) return false;
    return places.every((p) => body.partitions.may_lack.includes(p)) && body.may_lack_since <= first;
  });
}

/** Envelopes to these agents whose first acceptance was answered since then. */
function acceptedFor({ ledger }: ClusterFleet, agents: readonly ReturningAgent[], since: number): Entry[] {
  const ids = new Set(agents.map(({ id }) => id));
  return ledger.content.entries.filter(
    (entry) => entry.to !== undefined && ids.has(entry.to) && (acceptedAt(entry) ?? Number.NEGATIVE_INFINITY) >= since,
  );
}

/** Monotonic ms. */
function acceptedAt(entry: Entry): number | undefined {
  return acceptancesOf(entry)[0]?.at;
}

function isAnsweredAgain({ attempts }: Entry): boolean {
  return attempts.length > 1 && attempts.at(-1)?.answer?.accepted === true;
}
