import type { Launch, Target } from "../target.ts";
import { registered, some, untilOver } from "./agents.ts";
import { type Onslaught, strands, Voice } from "./onslaught.ts";
import { frameOf, type Wire } from "./wire.ts";

/** Who is registered, and abuses the framing of websockets: before that, all that one sends is bounded at once. */

const CONNECTIONS = 20;
const OPCODE = { continuation: 0x00, unfinishedText: 0x01, ping: 0x89 } as const;
/** Frames of one write. */
const AT_ONCE = 500;
/** Connections of a strand one after the other: a register is valid once. */
const ROUNDS = 20;
/** Too many fragments, or bytes. Source: RFC 6455, section 7.4.1. */
const ENDED: readonly unknown[] = [1008, 1009];

export async function pings(target: Target) {
  const many = Buffer.concat(Array<Buffer>(AT_ONCE).fill(frameOf("ping", OPCODE.ping)));
  return registeredStrands(target, "pings", async (on, wire) => {
    while (wire.isOpen && !on.isOver) await on.write(wire, many, AT_ONCE);
  });
}

/** Messages that never end, a byte a frame. */
export async function fragments(target: Target) {
  const first = frameOf("{", OPCODE.unfinishedText);
  const many = Buffer.concat(Array<Buffer>(AT_ONCE).fill(frameOf(" ", OPCODE.continuation)));
  let ended = 0;
  const launch = registeredStrands(target, "fragments", async (on, wire) => {
    await on.write(wire, first);
    while (wire.isOpen && !on.isOver) await on.write(wire, many, AT_ONCE);
    if (ENDED.includes(wire.closedWith)) ended += 1;
  });
  return async () => {
    const attacked = await launch();
    return ended > 0 ? attacked : { ...attacked, faults: ["no message was ended"] };
  };
}

function registeredStrands(target: Target, name: string, attack: (on: Onslaught, wire: Wire) => Promise<void>): Launch {
  const voice = new Voice(target, name);
  const registers = some(CONNECTIONS, (n) => some(ROUNDS, () => voice.frame(`a${n}`, "agent.register")));
  return strands(target, CONNECTIONS, async (on, n) => {
    const register = registers[n]?.pop();
    const wire = register === undefined ? undefined : await on.open(target.connectors[0], on.address(n));
    if (wire === undefined || register === undefined) return untilOver(on.over);
    await registered(wire, register);
    await attack(on, wire);
  });
}
