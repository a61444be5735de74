import { type Answer, type Entry, promiseOf } from "../../support/ledger.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { until } from "../../support/until.ts";
import type { Fleet } from "../fleet.ts";

/** What the ledger says of a fault while it lasts: whether it bites, and whom. */

type Agents = readonly Pick<ReturningAgent, "id">[];

/** Tells answers apart. @param sentAt when that was sent. */
type Holds = (answer: Answer, sentAt: number) => boolean;

/** What was sent, since then, and had such an answer. */
function answeredSince({ ledger }: Fleet, since: number, holds: Holds): Entry[] {
  return ledger.content.entries.filter(({ attempts }) =>
    attempts.some(({ at, answer }) => at > since && answer !== undefined && holds(answer, at)),
  );
}

/** Resolves when each of these agents had such an answer, to what it sent since now, or to what was sent to it. */
async function untilEachHas(
  fleet: Fleet,
  agents: Agents,
  side: "from" | "to",
  { name, holds }: { readonly name: string; readonly holds: Holds },
): Promise<void> {
  const since = performance.now();
  await until(name, () => {
    const seen = new Set(answeredSince(fleet, since, holds).map((entry) => entry[side]));
    return agents.every(({ id }) => seen.has(id));
  });
}

const isUnavailable: Holds = (answer) => !answer.accepted && answer.code === "unavailable";

/** Resolves when each of these agents was refused with `unavailable`, since now. */
export async function untilRefused(fleet: Fleet, agents: Agents): Promise<void> {
  await untilEachHas(fleet, agents, "from", { name: "all are refused", holds: isUnavailable });
}

/** Resolves when envelopes to each of these agents were refused with `unavailable`, since now. */
export async function untilRefusedTo(fleet: Fleet, agents: Agents): Promise<void> {
  await untilEachHas(fleet, agents, "to", { name: "what is for them is refused", holds: isUnavailable });
}

/** Resolves when each agent had an ack that took longer than Redis takes at its best. */
export async function untilAnsweredSlowly(fleet: Fleet, atLeastMs: number): Promise<void> {
  const holds: Holds = (answer, sentAt) => answer.accepted && answer.at - sentAt >= atLeastMs;
  await untilEachHas(fleet, fleet.agents, "from", { name: "all are answered slowly", holds });
}

/** Lets a fault come, and resolves when all others were served meanwhile: only what lies in the shard may be refused. */
export async function spared(fleet: Fleet, touched: Agents, fault: () => Promise<unknown>): Promise<void> {
  const others = fleet.agents.filter((agent) => !touched.includes(agent));
  const holds: Holds = ({ accepted }) => accepted;
  await Promise.all([fault(), untilEachHas(fleet, others, "to", { name: "others are served meanwhile", holds })]);
}

/** How many envelopes that were sent since then are acknowledged as delivered to these agents in realtime. */
export function promisedTo({ ledger }: Fleet, agents: Agents, since: number): number {
  const ids = new Set(agents.map(({ id }) => id));
  return ledger.content.entries.filter(
    (entry) => entry.to !== undefined && ids.has(entry.to) && (promiseOf(entry)?.at ?? 0) > since,
  ).length;
}

/** True when an envelope to the agent, sent since then, was acknowledged as not delivered in realtime. */
export function isRefusedDelivery(fleet: Fleet, { id }: Agents[number], since: number): boolean {
  const answered = answeredSince(fleet, since, (answer) => answer.accepted && !answer.deliverable);
  return answered.some(({ to }) => to === id);
}

/** Resolves with the time at which each agent had sent and received something that was sent after `since`. */
export async function exchanging(fleet: Fleet, agents: Agents, since: number, withinMs: number): Promise<number> {
  const mark = fleet.ledger.content.entries.length;
  let times: (number | undefined)[] = [];
  await until(
    "all agents send and receive",
    () => {
      const arrived = fleet.ledger.content.entries.slice(mark).filter(hasArrived);
      times = agents.flatMap(({ id }) => [
        firstArrival(arrived.filter((entry) => entry.from === id)),
        firstArrival(arrived.filter((entry) => entry.to === id)),
      ]);
      return times.every((time) => time !== undefined);
    },
    withinMs,
  ).catch((error) => {
    const missing = times.flatMap((time, n) =>
      time === undefined ? [`${agents[n >> 1]?.id} ${n % 2 ? "receives" : "sends"}`] : [],
    );
    throw new Error(`${error.message}; missing: ${missing.join(", ")}`);
  });
  return Math.max(since, ...(times as number[]));
}

function hasArrived(entry: Entry): boolean {
  return promiseOf(entry) !== undefined && entry.deliveries.length > 0;
}

/** When the first of these had both its ack and its delivery. */
function firstArrival(entries: readonly Entry[]): number | undefined {
  const times = entries.map((entry) => Math.max(promiseOf(entry)?.answer.at ?? 0, entry.deliveries[0]?.at ?? 0));
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Of each agent that something was refused of: ms from the first `unavailable` to the next acceptance of what is for it, or its own. */
export function unavailabilities(entries: readonly Entry[], agents: Agents): number[] {
  return agents.flatMap(({ id }) => {
    const own = entries.filter(({ from, to }) => (to ?? from) === id);
    const answers = own.flatMap(({ attempts }) => attempts.flatMap(({ answer }) => answer ?? []));
    answers.sort((one, other) => one.at - other.at);
    const refused = answers.find((answer) => !answer.accepted && answer.code === "unavailable")?.at;
    if (refused === undefined) return [];
    const served = answers.find(({ accepted, at }) => accepted && at > refused)?.at;
    return served === undefined ? [] : [served - refused];
  });
}
