import { deflateRawSync } from "node:zlib";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import type { Target } from "../target.ts";
import { type Onslaught, strands } from "./onslaught.ts";
import { frameOf, type Wire } from "./wire.ts";

/** Who has no key. */

const STRANGERS = 200;
/** One fewer than what closes a connection. */
const FRAMES_EACH = 19;
const LARGEST = 32_000;
const ADDRESSES = 20;
/** Twice as many as one address may open, within the attack. */
const CHURNED_PER_SECOND = 1000;
const CHURNING = 25;
const COMPRESSED_TEXT = 0xc1;
const CUT_OFF = "a compressed frame closed its connection with 1002";
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
