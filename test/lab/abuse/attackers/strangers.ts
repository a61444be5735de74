import { setTimeout as delay } from "node:timers/promises";
import { deflateRawSync } from "node:zlib";
import type { Target } from "../support/target.ts";
import { registered } from "./agents.ts";
import { type Onslaught, strands, Voice } from "./onslaught.ts";
import { frameOf, type Wire } from "./wire.ts";

/** Floods of connections and frames; all but one by who has no key. */

const STRANGERS = 200;
/** One fewer than what closes a connection. */
const FRAMES_EACH = 19;
const LARGEST = 32_000;
const ADDRESSES = 20;
const PINGING = 20;
/** Fewer than the 60 pongs under way at which ws itself ends a connection. */
const PINGS_AT_ONCE = 50;
/** Twice as many as one address may open, within the attack. */
const CHURNED_PER_SECOND = 1000;
const CHURNING = 25;
const OPCODE = { continuation: 0x00, unfinishedText: 0x01, compressedText: 0xc1, ping: 0x89 } as const;
const INFLATED = 10_000_000;

/** Valid in shape, of a key that nobody has, and costly to bring into canonical form: very many members, unsorted. */
export function strangersFrame(): Buffer {
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
  const bomb = frameOf(deflateRawSync(Buffer.alloc(INFLATED, " ")), OPCODE.compressedText);
  return strands(target, CHURNING, async (on, n) => {
    const offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits";
    const wire = await on.open(target.connectors[0], on.address(n % ADDRESSES), [offer]);
    if (wire === undefined) return;
    if (/permessage-deflate/i.test(wire.head)) on.faults.push("compression was agreed on");
    await on.write(wire, bomb);
    await answered(on, wire, Number.POSITIVE_INFINITY);
    wire.socket.destroy();
  });
}

/** Registered, for who is not may send a few frames only. */
export async function pings(target: Target) {
  const voice = new Voice(target, "pings");
  const many = Buffer.concat(Array<Buffer>(PINGS_AT_ONCE).fill(frameOf("ping", OPCODE.ping)));
  return strands(target, PINGING, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n % ADDRESSES));
    if (wire !== undefined) await registered(wire, voice.frame(`a${n}`, "agent.register")).catch(() => {});
    while (wire?.isOpen && !on.isOver) {
      await on.write(wire, many, PINGS_AT_ONCE);
      await delay(1);
    }
  });
}

/** Messages that never end, a byte a frame. */
export async function fragments(target: Target) {
  const first = frameOf("{", OPCODE.unfinishedText);
  const many = Buffer.concat(Array<Buffer>(500).fill(frameOf(" ", OPCODE.continuation)));
  return strands(target, PINGING, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n % ADDRESSES));
    if (wire !== undefined) await on.write(wire, first);
    while (wire?.isOpen && !on.isOver) await on.write(wire, many, 500);
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
