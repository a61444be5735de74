import { createHmac, createPrivateKey, type KeyObject, randomBytes, sign } from "node:crypto";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { WebSocket } from "ws";
import { parseJson } from "../../connector/src/parse-json.ts";
import { until } from "./until.ts";

/**
 * An agent as an outside author would write it from the published documents: `ws` and `node:crypto`, nothing of the
 * relay's own code. JSON is read as the connector does, since JSON.parse may take a member name for another.
 */

export interface AgentKey {
  readonly keyId: string;
  readonly sign: (text: string) => string;
}

/** base64url seed of 32 bytes. */
export function ed25519Key(keyId: string, seed: string): AgentKey {
  const key = ed25519PrivateKey(seed);
  return { keyId, sign: (text) => sign(null, Buffer.from(text), key).toString("base64url") };
}

export function hmacKey(keyId: string, secret: string): AgentKey {
  const bytes = Buffer.from(secret, "base64url");
  return { keyId, sign: (text) => createHmac("sha256", bytes).update(text).digest("base64url") };
}

function ed25519PrivateKey(seed: string): KeyObject {
  const prefix = Buffer.from("302e020100300506032b657004220420", "hex");
  return createPrivateKey({
    key: Buffer.concat([prefix, Buffer.from(seed, "base64url")]),
    format: "der",
    type: "pkcs8",
  });
}

/** Canonical text of any JSON value: RFC 8785 for the values that tests send. */
export function jcs(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jcs).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${jcs(member)}`).join(",")}}`;
}

const ORDER = ["id", "type", "from", "to", "task_id", "payload", "ts", "key_id"] as const;

// biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type yet.
export type Frame = any;
export type Fields = { readonly [name: string]: unknown };

export function canonical(envelope: Fields): string {
  const members = ORDER.filter((name) => envelope[name] !== undefined);
  return `{${members.map((name) => `"${name}":${jcs(envelope[name])}`).join(",")}}`;
}

let serial = 0;

/** A signed envelope; `fields` override what it is made of, and `sig` too. */
export function signed(key: AgentKey, fields: Fields): Frame {
  serial += 1;
  const envelope = {
    id: `env-${serial}-${randomBytes(4).toString("hex")}`,
    payload: {},
    ts: Date.now(),
    key_id: key.keyId,
    ...fields,
  };
  return { ...envelope, sig: key.sign(canonical(envelope)), ...("sig" in fields ? { sig: fields.sig } : {}) };
}

/** One websocket of an agent, with everything that came in. */
export class AgentSocket {
  readonly socket: WebSocket;
  readonly frames: Frame[] = [];
  /** The frames as they came, for tests that validate them. */
  readonly texts: string[] = [];
  closed: { readonly code: number } | undefined;

  /** @param headers go out with the upgrade. */
  constructor(url: string, headers: Record<string, string> = {}) {
    this.socket = new WebSocket(url, { headers });
    this.socket.on("message", (data: Buffer) => {
      this.texts.push(data.toString());
      this.frames.push(parseJson(data.toString()) as Frame);
    });
    this.socket.on("close", (code: number) => {
      this.closed = { code };
    });
    this.socket.on("error", () => {});
  }

  /** Connects and waits for hello. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<AgentSocket> {
    const agent = new AgentSocket(url, headers);
    await agent.next("hello", (frame) => frame.frame === "hello");
    return agent;
  }

  send(envelope: unknown): void {
    this.socket.send(typeof envelope === "string" ? envelope : JSON.stringify(envelope));
  }

  /** Sends and waits for the ack or error of that envelope. */
  async ask(envelope: Frame): Promise<Frame> {
    const from = this.frames.length;
    this.send(envelope);
    const isAnswer = (frame: Frame) =>
      (frame.frame === "ack" || frame.frame === "error") && frame.envelope_id === envelope.id;
    return await this.next(`answer to ${envelope.type}`, isAnswer, from);
  }

  /** Sends what may not even be an envelope, and waits for the next ack or error. */
  async answerTo(text: string): Promise<Frame> {
    const from = this.frames.length;
    this.send(text);
    return await this.next("an answer", ({ frame }) => frame === "ack" || frame === "error", from);
  }

  /** The first frame, from the given one on, for which `matches` holds. */
  async next(name: string, matches: (frame: Frame) => boolean, from = 0): Promise<Frame> {
    let found: Frame;
    await until(name, () => {
      found = this.frames.slice(from).find(matches);
      return found !== undefined || this.closed !== undefined;
    });
    if (found === undefined) throw new Error(`The connection closed with ${this.closed?.code} before: ${name}`);
    return found;
  }

  get deliveries(): Frame[] {
    return this.frames.filter(({ frame }) => frame === "deliver");
  }

  /** The relay's name for this connection. */
  get connectionId(): string {
    return this.frames.find(({ frame }) => frame === "hello").connection_id;
  }

  /** Notices of one kind. */
  notices(kind: string): Frame[] {
    return this.frames.filter(({ frame, notice }) => frame === "notice" && notice === kind);
  }

  /** The first delivery of the envelope with this id. */
  async delivered(id: string): Promise<Frame> {
    return await this.next(`delivery of ${id}`, ({ frame, envelope }) => frame === "deliver" && envelope.id === id);
  }

  /** The close code. */
  async untilClosed(withinMs?: number): Promise<number> {
    await until("the relay closes the connection", () => this.closed !== undefined, withinMs);
    return this.closed?.code ?? 0;
  }

  async close(): Promise<void> {
    if (this.socket.readyState === WebSocket.CLOSED) return;
    // A socket that is still connecting fails first, which is no fault of who closes it.
    const closed = new Promise((resolve) => this.socket.once("close", resolve));
    this.socket.close();
    await closed;
  }
}

/** Asks for a websocket by hand. Resolves to the answer; a connection that is granted is dropped at once. */
export async function tryUpgrade(at: { readonly url: string }, path: string, headers: Record<string, string> = {}) {
  const { resolve, reject, promise } = Promise.withResolvers<{ answer: IncomingMessage; body: string }>();
  const handshake = {
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
  };
  const req = request(`${at.url}${path}`, { headers: { ...handshake, ...headers } });
  req.on("upgrade", (answer, socket) => {
    socket.on("error", () => {}).destroy();
    resolve({ answer, body: "" });
  });
  req.on("response", async (answer) => resolve({ answer, body: await text(answer) }));
  req.on("error", reject);
  req.end();
  const { answer, body } = await promise;
  return { status: answer.statusCode, headers: answer.headers, problem: body === "" ? null : JSON.parse(body) };
}

/** A sender that keeps some envelopes in flight for as long as a test asks, and what it was told of each. */
export class Traffic {
  readonly sent = new Map<string, Frame>();
  readonly answers = new Map<string, Frame>();
  readonly #sender: AgentSocket;
  readonly #make: (n: number) => Frame;
  #runs = true;

  /** @param make the n-th envelope. */
  constructor(sender: AgentSocket, inFlight: number, make: (n: number) => Frame) {
    this.#sender = sender;
    this.#make = make;
    sender.socket.on("message", (data: Buffer) => this.#receive(JSON.parse(data.toString())));
    for (let n = 0; n < inFlight; n += 1) this.#sendNext();
  }

  /** Sends no more; resolves when every envelope has its answer. */
  async stop(): Promise<void> {
    this.#runs = false;
    await until("every envelope is answered", () => this.answers.size === this.sent.size);
  }

  /** Ids of the envelopes that were acknowledged as delivered in realtime. */
  get promised(): string[] {
    return [...this.answers.values()]
      .filter(({ target_delivery }) => target_delivery?.can_deliver_realtime === true)
      .map(({ envelope_id }) => envelope_id);
  }

  #receive(frame: Frame): void {
    if (!this.sent.has(frame.envelope_id)) return;
    this.answers.set(frame.envelope_id, frame);
    if (this.#runs) this.#sendNext();
  }

  #sendNext(): void {
    const envelope = this.#make(this.sent.size);
    this.sent.set(envelope.id, envelope);
    this.#sender.send(envelope);
  }
}

/** Ids of all envelopes delivered to these sockets, each as often as it came. */
export function deliveredTo(sockets: readonly AgentSocket[]): string[] {
  return sockets.flatMap(({ deliveries }) => deliveries.map(({ envelope }) => envelope.id));
}
