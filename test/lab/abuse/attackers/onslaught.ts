import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type AgentKey, ed25519Key, type Fields, type Frame, signed } from "../../../support/agent.ts";
import { CLOSE, frameOf, readFrames, TEXT } from "../../frames.ts";
import { type Attacked, addressOf, FORWARDED, type Launch, type Target } from "../target.ts";

/** How long who was not let in waits before it tries again. */
const TRY_AGAIN_MS = 20;

/** What goes on during one attack: until when, how much it is by now, and what must not be. */
export class Onslaught {
  readonly over: AbortSignal;
  readonly faults: string[] = [];
  connections = 0;
  frames = 0;
  bytes = 0;
  readonly #network: number;
  /** What the relay is to do about it, and whether it was seen to. */
  readonly #expected = new Map<string, boolean>();

  constructor({ forMs, network }: Target) {
    this.over = AbortSignal.timeout(forMs);
    this.#network = network;
  }

  get isOver(): boolean {
    return this.over.aborted;
  }

  /** The n-th of the addresses that the attack comes from. */
  address(n: number): string {
    return addressOf(this.#network, n);
  }

  /** The attack has not come to what it is about until this was seen. */
  expects(what: string): void {
    if (!this.#expected.has(what)) this.#expected.set(what, false);
  }

  saw(what: string): void {
    this.#expected.set(what, true);
  }

  /** A websocket from that address; undefined when it was not let in. */
  async open(port: number, address: string, lines: readonly string[] = []): Promise<Wire | undefined> {
    const wire = await Wire.open(port, { address, lines });
    if (wire === undefined) await delay(TRY_AGAIN_MS);
    else this.connections += 1;
    return wire;
  }

  /** Writes, as fast as it is taken, until the time is over or the connection is. */
  async write(wire: Wire, data: Buffer, frames = 1): Promise<void> {
    if (!wire.isOpen || this.isOver) return;
    this.frames += frames;
    this.bytes += data.length;
    wire.socket.write(data);
    await drained(wire.socket, this.over);
  }

  get attacked(): Attacked {
    const { connections, frames, bytes, faults } = this;
    const unseen = [...this.#expected].filter(([, isSeen]) => !isSeen).map(([what]) => `not seen: ${what}`);
    return { connections, frames, bytes, faults: [...faults, ...unseen] };
  }
}

/** Runs so many strands side by side until the time is over, each again and again. */
export function strands(target: Target, count: number, strand: (on: Onslaught, n: number) => Promise<void>): Launch {
  return async () => {
    const on = new Onslaught(target);
    const all = Array.from({ length: count }, async (_, n) => {
      while (!on.isOver) {
        await strand(on, n);
        // Whoever is refused at once lets the others go on.
        await delay(0);
      }
    });
    await Promise.all(all);
    return on.attacked;
  };
}

/** An attacker's voice: its agents `agent://<name>.<agent>`, under one key. */
export class Voice {
  readonly #name: string;
  readonly #key: AgentKey;

  constructor({ keys }: Target, name: string) {
    const key = keys[name];
    if (key === undefined) throw new Error(`There is no key of that name: ${name}`);
    this.#name = name;
    this.#key = ed25519Key(key.keyId, key.seed);
  }

  id(agent: string): string {
    return `agent://${this.#name}.${agent}`;
  }

  envelope(agent: string, type: string, fields: Fields = {}): Frame {
    return signed(this.#key, { type, from: this.id(agent), ...fields });
  }

  frame(agent: string, type: string, fields: Fields = {}): Buffer {
    return frameOf(JSON.stringify(this.envelope(agent, type, fields)));
  }
}

/** Sends these frames in turn, again and again. */
export async function pour(on: Onslaught, wire: Wire, frames: readonly Buffer[]): Promise<void> {
  for (let n = 0; wire.isOpen && !on.isOver; n += 1) await on.write(wire, frames[n % frames.length] as Buffer);
}

export function some<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

export async function untilOver(over: AbortSignal): Promise<void> {
  if (!over.aborted) await new Promise((resolve) => over.addEventListener("abort", resolve));
}

/** Registers an agent. @throws Error when it is refused. */
export async function registered(wire: Wire, frame: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    wire.onText = (text) => {
      const { frame: kind, code }: Frame = JSON.parse(text);
      if (kind === "ack") resolve();
      if (kind === "error") reject(new Error(`A register was refused with ${code}.`));
    };
    wire.socket.on("close", () => reject(new Error("The connection was closed at the register.")));
    wire.socket.write(frame);
  });
}

/** No attack at all: another process that computes. What it costs bystanders, the machine costs them. */
export async function neighbour({ forMs }: Target) {
  return async () => {
    const end = performance.now() + forMs;
    while (performance.now() < end);
    return { connections: 0, frames: 0, bytes: 0, faults: [] };
  };
}

/** A socket that an attacker writes to; its end is no error, since it is what the relay does about it. */

/** Opens a connection and counts what goes out on it. Undefined when it was not taken. */
export async function openSocket(port: number): Promise<Socket | undefined> {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  socket.on("error", () => {});
  await Promise.race([once(socket, "connect"), once(socket, "close")]).catch(() => {});
  return socket.destroyed ? undefined : socket;
}

/** Resolves when the socket takes more, has ended, or the time is over. */
export async function drained(socket: Socket, over: AbortSignal): Promise<void> {
  if (socket.destroyed || !socket.writableNeedDrain || over.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      socket.off("drain", end).off("close", end);
      over.removeEventListener("abort", end);
      resolve();
    };
    socket.on("drain", end).on("close", end);
    over.addEventListener("abort", end);
  });
}

/** Resolves when the socket has ended, or the time is over. */
export async function ended(socket: Socket, over: AbortSignal): Promise<void> {
  if (!socket.destroyed && !over.aborted) await once(socket, "close", { signal: over }).catch(() => {});
}

interface Handshake {
  readonly address: string;
  /** Further lines of the header. */
  readonly lines?: readonly string[];
}

/** One websocket, by hand. */
export class Wire {
  readonly socket: Socket;
  /** The header that the relay answered the upgrade with. */
  readonly head: string;
  /** Texts that came in, for who listens. */
  onText: ((text: string) => void) | undefined;
  /** The code of the relay's close frame, once it came in while somebody listens. */
  closedWith: number | undefined;
  #rest: Buffer;

  private constructor(socket: Socket, head: string, rest: Buffer) {
    this.socket = socket;
    this.head = head;
    this.#rest = rest;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
  }

  /** Undefined when the relay does not let it in. */
  static async open(port: number, { address, lines = [] }: Handshake): Promise<Wire | undefined> {
    const socket = await openSocket(port);
    socket?.write(
      [
        ...["GET /ws HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket"],
        ...["Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`],
        ...[`${FORWARDED}: ${address}`, ...lines, "", ""],
      ].join("\r\n"),
    );
    let data = Buffer.alloc(0);
    while (socket !== undefined && !socket.destroyed && !data.includes("\r\n\r\n")) {
      const [chunk] = await Promise.race([once(socket, "data"), once(socket, "close")]).catch(() => []);
      if (Buffer.isBuffer(chunk)) data = Buffer.concat([data, chunk]);
    }
    const end = data.indexOf("\r\n\r\n") + 4;
    const head = data.toString("latin1", 0, end);
    if (socket === undefined || !head.startsWith("HTTP/1.1 101")) {
      socket?.destroy();
      return undefined;
    }
    return new Wire(socket, head, data.subarray(end));
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && this.socket.writable;
  }

  #receive(chunk: Buffer): void {
    if (this.onText === undefined) return;
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = readFrames(data, (opcode, payload) => {
      if (opcode === TEXT) this.onText?.(payload.toString());
      if (opcode === CLOSE) this.closedWith = payload.readUInt16BE(0);
    });
  }
}
