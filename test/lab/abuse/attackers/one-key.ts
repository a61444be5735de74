import { ABSENT } from "../support/names.ts";
import type { Launch, Target } from "../target.ts";
import { registered, some } from "./agents.ts";
import { pour, strands, Voice } from "./onslaught.ts";

/** One key over very many connections: what each of them may, all together may not. */

const ADDRESSES = 20;
const CONNECTIONS = 60;
const BURST_CONNECTIONS = 200;
const DISTINCT_EACH = 4;
const MEMBERS = 1900;
const LARGEST = 30_000;
const DISPLACING_CONNECTIONS = 10;
const AGENTS_EACH = 50;
const REQUESTS_OF_AN_AGENT = 20;
const LONGEST_TTL_MINUTES = 1440;

/** Large frames that are costly to bring into canonical form. */
export async function bytesOfAKey(target: Target) {
  const members = Object.fromEntries(some(MEMBERS, (n) => [`m${(n * 7919) % 10_007}`, n]));
  const payload = { ...members, text: "x".repeat(LARGEST - JSON.stringify(members).length) };
  return floodOfAKey(target, "bytes", CONNECTIONS, payload);
}

/** Small frames: their number is what costs. */
export async function burstOfAKey(target: Target) {
  return floodOfAKey(target, "burst", BURST_CONNECTIONS, {});
}

function floodOfAKey(target: Target, name: string, connections: number, payload: object): Launch {
  const voice = new Voice(target, name);
  const to = voice.id("sink");
  const all = some(connections, (n) => ({
    register: voice.frame(`a${n}`, "agent.register"),
    messages: some(DISTINCT_EACH, () => voice.frame(`a${n}`, "message.send", { to, payload })),
  }));
  return strands(target, connections, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n % ADDRESSES));
    if (wire === undefined) return;
    const { register, messages } = all[n] as (typeof all)[number];
    await registered(wire, register);
    await pour(on, wire, messages);
  });
}

/** Requesters of one key, each within its bounds, displace their own sessions at one target. */
export async function displacing(target: Target) {
  const voice = new Voice(target, "displacing");
  const payload = { purpose: "flood", ttl_minutes: LONGEST_TTL_MINUTES };
  const all = some(DISPLACING_CONNECTIONS, (connection) => {
    const names = some(AGENTS_EACH, (n) => `r${connection}-${n}`);
    const request = (name: string) => voice.frame(name, "session.request", { to: ABSENT, payload });
    return [
      ...names.map((name) => voice.frame(name, "agent.register")),
      ...some(REQUESTS_OF_AN_AGENT, () => names.map(request)).flat(),
    ];
  });
  return strands(target, DISPLACING_CONNECTIONS, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n));
    const [first, ...frames] = all[n] as [Buffer, ...Buffer[]];
    if (wire === undefined) return;
    await registered(wire, first);
    await pour(on, wire, frames);
  });
}
