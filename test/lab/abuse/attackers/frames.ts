import { setTimeout as delay } from "node:timers/promises";
import { addressOf } from "../support/addresses.ts";
import type { Launch, Target } from "../target.ts";
import { registered, some } from "./agents.ts";
import { Onslaught, Voice } from "./onslaught.ts";
import { frameOf, Wire } from "./wire.ts";

/** One key over as many connections as one address may have: frames that no limit of one connection counts. */

const CONNECTIONS = 900;
const ADDRESSES = 20;
/** Who connects at once while nobody waits for it. */
const TOGETHER = 50;
/** Within what one connection may: 190 pings a second. */
const PINGS_AT_ONCE = 19;
const PINGS_EVERY_MS = 100;
const CHUNK = 65_536;
const ROUNDS = 3;
const ROUND_MS = 2000;
const PING = frameOf("", 0x89);
const EMPTY = { pings: PING, texts: frameOf("", 0x81) } as const;

/** Each connection within its own rate. */
export async function pingsOfAKey(target: Target): Promise<Launch> {
  const agents = agentsOf(target, "manypings", 1);
  const wires = await connected(target, agents);
  const many = Buffer.concat(Array<Buffer>(PINGS_AT_ONCE).fill(PING));
  return async () => {
    const on = new Onslaught(target);
    on.connections = wires.length;
    while (!on.isOver) {
      const next = delay(PINGS_EVERY_MS);
      for (const wire of wires) if (!wire.socket.writableNeedDrain) void on.write(wire, many, PINGS_AT_ONCE);
      await next;
    }
    return on.attacked;
  };
}

/** All of them write a chunk full at the same moment, and come again. */
export function burstsOf(kind: keyof typeof EMPTY) {
  return async (target: Target): Promise<Launch> => {
    const agents = agentsOf(target, `many${kind}`, ROUNDS);
    const frame = EMPTY[kind];
    const frames = Math.floor(CHUNK / frame.length);
    const chunk = Buffer.concat(Array<Buffer>(frames).fill(frame));
    let wires = await connected(target, agents);
    return async () => {
      const on = new Onslaught(target);
      while (!on.isOver) {
        const next = delay(ROUND_MS);
        on.connections += wires.length;
        for (const wire of wires) void on.write(wire, chunk, frames);
        await next;
        for (const { socket } of wires) socket.destroy();
        wires = await connected(target, agents, on.over);
      }
      return on.attacked;
    };
  };
}

/** The registers of each connection: each is valid once. */
function agentsOf(target: Target, name: string, times: number): Buffer[][] {
  const voice = new Voice(target, name);
  return some(CONNECTIONS, (n) => some(times, () => voice.frame(`a${n}`, "agent.register")));
}

/** Takes the next register of each, as many as there is time for. */
async function connected(target: Target, agents: readonly Buffer[][], over?: AbortSignal): Promise<Wire[]> {
  const wires: Wire[] = [];
  for (let from = 0; from < agents.length && over?.aborted !== true; from += TOGETHER) {
    await Promise.all(
      agents.slice(from, from + TOGETHER).map(async (registers, at) => {
        const address = addressOf(target.network, (from + at) % ADDRESSES);
        const wire = await Wire.open(target.connectors[0], { address });
        const register = registers.pop();
        if (wire === undefined || register === undefined) return;
        await registered(wire, register).catch(() => {});
        if (wire.isOpen) wires.push(wire);
      }),
    );
  }
  return wires;
}
