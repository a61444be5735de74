import { setTimeout as delay } from "node:timers/promises";
import { deflateRawSync } from "node:zlib";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { frameOf } from "../../frames.ts";
import { addressOf, type Launch, type Target } from "../target.ts";
import { Onslaught, registered, some, strands, untilOver, Voice, Wire } from "./onslaught.ts";

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

/** Who is registered, and abuses the framing of websockets: before that, all that one sends is bounded at once. */

const FRAMING_CONNECTIONS = 20;
const OPCODE = { continuation: 0x00, unfinishedText: 0x01, ping: 0x89 } as const;
/** Frames of one write. */
const AT_ONCE = 500;
/** Connections of a strand one after the other: a register is valid once. */
const FRAMING_ROUNDS = 20;
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
  const registers = some(FRAMING_CONNECTIONS, (n) =>
    some(FRAMING_ROUNDS, () => voice.frame(`a${n}`, "agent.register")),
  );
  return strands(target, FRAMING_CONNECTIONS, async (on, n) => {
    const register = registers[n]?.pop();
    const wire = register === undefined ? undefined : await on.open(target.connectors[0], on.address(n));
    if (wire === undefined || register === undefined) return untilOver(on.over);
    await registered(wire, register);
    await attack(on, wire);
  });
}

/** Who has no key. */

const STRANGERS = 200;
/** One fewer than what closes a connection. */
const FRAMES_EACH = 19;
const LARGEST = 32_000;
/** Twice as many as one address may open, within the attack. */
const CHURNED_PER_SECOND = 1000;
const CHURNING = 25;
const COMPRESSED_TEXT = 0xc1;
const CUT_OFF = "a compressed frame closed its connection with 1002";
const INFLATED = 10_000_000;

/** Valid in shape, of a key that nobody has, and costly to bring into canonical form: very many members, unsorted. */
function strangersFrame(): Buffer {
  const payload: Record<string, number> = {};
  for (let n = 1900; n > 0; n -= 1) payload[`m${(n * 7919) % 10_007}`] = 1e5 + n;
  const sig = "A".repeat(86);
  const head = {
    id: "stranger-1",
    type: "agent.register",
    from: "agent://stranger",
    ts: Date.now(),
    key_id: "nobodys",
    sig,
  };
  const text = JSON.stringify({ ...head, payload });
  return frameOf(JSON.stringify({ ...head, payload: { ...payload, z: "z".repeat(LARGEST - text.length) } }));
}

export async function withoutAKey(target: Target) {
  const all = Buffer.concat(Array<Buffer>(FRAMES_EACH).fill(strangersFrame()));
  return strands(target, STRANGERS, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n % ADDRESSES));
    if (wire === undefined) return;
    await on.write(wire, all, FRAMES_EACH);
    await answered(on, wire, FRAMES_EACH);
    wire.socket.destroy();
  });
}

/** Frames that say they are compressed, small on the way and large once they are inflated. */
export async function compressed(target: Target) {
  const bomb = frameOf(deflateRawSync(Buffer.alloc(INFLATED, " ")), COMPRESSED_TEXT);
  return strands(target, CHURNING, async (on, n) => {
    const offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits";
    const wire = await on.open(target.connectors[0], on.address(n % ADDRESSES), [offer]);
    if (wire === undefined) return;
    on.expects(CUT_OFF);
    if (/permessage-deflate/i.test(wire.head)) on.faults.push("compression was agreed on");
    await on.write(wire, bomb);
    await answered(on, wire, Number.POSITIVE_INFINITY);
    if (wire.closedWith === CLOSE_CODES.protocolError.code) on.saw(CUT_OFF);
    wire.socket.destroy();
  });
}

/** Websockets that one address opens and drops. */
export async function churn(target: Target) {
  const pauseMs = (1000 * CHURNING) / CHURNED_PER_SECOND;
  return strands(target, CHURNING, async (on) => {
    const next = new Promise((resolve) => setTimeout(resolve, pauseMs));
    const wire = await on.open(target.connectors[0], on.address(0));
    wire?.socket.destroy();
    await next;
  });
}

/** Resolves when so many texts came in, `hello` aside, or the connection or the time is over. */
async function answered(on: Onslaught, wire: Wire, texts: number): Promise<void> {
  let left = texts + 1;
  await new Promise<void>((resolve) => {
    const end = () => {
      on.over.removeEventListener("abort", end);
      resolve();
    };
    on.over.addEventListener("abort", end);
    if (on.isOver || !wire.isOpen) end();
    wire.socket.on("close", end);
    wire.onText = () => {
      left -= 1;
      if (left === 0) end();
    };
  });
}
