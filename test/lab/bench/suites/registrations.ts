import { totalCpu } from "../../accounting.ts";
import { median, type Section, shown, times } from "../../report.ts";
import { inTurn, type Plan } from "../plan.ts";
import { connectionsWithin, limitText } from "./connections.ts";
import { AT_ONCE, COSTS, type Cost, KINDS, type Kind, type Measured, measure } from "./registrations-run.ts";
import type { Crowd } from "./registrations-traffic.ts";

const AGENTS = 10_000;
/** As many agents as a connection may carry: there a socket costs nearly nothing of a registration. */
const MOST_EACH = 100;

/** What the registration of an agent costs, and its messages, whose key is listed, and whose key a credential brings. */
export async function registrationSections(plan: Plan): Promise<Section[]> {
  const connections = Math.floor(connectionsWithin(KINDS.length * AGENTS) / KINDS.length);
  const alone = { agents: connections, laterAgents: 0, each: 1 };
  const together = { agents: AGENTS, laterAgents: AGENTS, each: MOST_EACH };
  return [
    await sectionOf(plan, "Registrations", alone, "each on a connection of its own"),
    await sectionOf(plan, "Registrations, many on a connection", together, `${MOST_EACH} on each connection`),
  ];
}

async function sectionOf(plan: Plan, title: string, crowd: Crowd, place: string): Promise<Section> {
  const { agents, laterAgents } = crowd;
  const measured: Record<Kind, Measured[]> = { listed: [], credential: [] };
  const countOf = (what: Cost) => (what === "later" ? laterAgents : agents);
  for (let round = 0; round < plan.rounds; round += 1) {
    for (const [kind, one] of await measure(plan, crowd, inTurn(KINDS, round))) {
      measured[kind].push(one);
      const [first, message, again, later] = COSTS.map((what) => shown(totalCpu(one.costs[what]) / countOf(what)));
      plan.say(
        `${title}, round ${round + 1}, ${kind}: ${first} µs each, a message ${message} µs, again ${again} µs, of others later ${later} µs`,
      );
    }
  }
  const over = (kind: Kind, figure: (one: Measured) => number) => median(measured[kind].map(figure));
  const cpu = (kind: Kind, what: Cost) => over(kind, (one) => totalCpu(one.costs[what]) / countOf(what));
  const ratio = (what: Cost) => cpu("credential", what) / cpu("listed", what);
  const others = laterAgents === 0 ? "" : ` Then ${shown(laterAgents)} others register.`;
  return {
    title,
    about:
      `${shown(agents)} agents register over two pods, ${place}, each with an Ed25519 key of its own: ` +
      "listed in the keys file, or with a credential of one issuer; then each sends a message, to an agent that nobody has seen, and " +
      `registers again, with the token that its pod has seen.${others} The two kinds take turns, ${AT_ONCE} agents at a time. ` +
      `CPU of both pods and Redis, without that of opening connections; memory that the first registrations add, with their connections.${limitText(agents, AGENTS)}`,
    head: [
      "",
      "s",
      "µs each",
      "µs a message",
      "µs again",
      "µs of others later",
      "pods, KiB an agent",
      "Redis, KiB an agent",
    ],
    rows: KINDS.map((kind) => [
      kind,
      shown(over(kind, ({ costs }) => costs.registration.seconds)),
      shown(cpu(kind, "registration")),
      shown(cpu(kind, "messages")),
      shown(cpu(kind, "again")),
      shown(cpu(kind, "later")),
      shown(over(kind, ({ podBytes }) => podBytes / agents / 1024)),
      shown(over(kind, ({ redisBytes }) => redisBytes / agents / 1024)),
    ]),
    aims: [
      {
        name: `registration with a credential to one with a listed key, ${place}`,
        value: ratio("registration"),
        most: 1.5,
      },
      { name: `message under a credential to one under a listed key, ${place}`, value: ratio("messages"), most: 1.1 },
    ],
    data: {
      measured,
      ratio: times(ratio("registration")),
      messages: times(ratio("messages")),
      again: times(ratio("again")),
      later: times(ratio("later")),
    },
  };
}
