import { connect, type Socket } from "node:net";
import type { Emitter } from "../../emitter.ts";
import { knownRetry } from "../../errors.ts";
import { membersOf, textOf } from "../../frames.ts";
import type { AgentConnection } from "../../mcp/agent.ts";
import { parseJson } from "../../parse-json.ts";
import type { Receipt } from "../../receipts/contract.ts";
import type {
  Accepted,
  AcceptedSession,
  AskOptions,
  CallOptions,
  ConnectorState,
  Delivery,
  JsonObject,
  SendOptions,
  SessionProposal,
} from "../../types.ts";
import { VERSION } from "../../version.ts";
import { proposalMembers } from "../../wire-mapping.ts";
import { Failure, hintOf } from "../failure.ts";
import { jsonLine } from "../io.ts";
import { deliveryOf, noticeOf, stateOf } from "./events.ts";
import type { AgentTransport, ControlRequest, ControlResult } from "./requests.ts";
import { ALIVE, type ControlPlace, FORMAT, linesOf, socketPaths } from "./socket.ts";

/** How long a process may take to say whose it is. One that was stopped (Ctrl-Z) never does. */
export const GREETING_MS = 5000;

/** The process of this user that has the agent's connection. */
export interface Holder {
  readonly client: ControlClient;
  readonly pid: number;
}

/**
 * Asks all sockets of the agent at once, so that several silent ones cost no more than one.
 * @param except the socket of this process.
 * @returns undefined when no process is there, or one of another version alone, which is warned of.
 * @throws {Failure} `unreachable` when one is there and says nothing.
 */
export async function findHolder(place: ControlPlace, except?: string): Promise<Holder | undefined> {
  const { agent, signal, warn } = place;
  const paths = (await socketPaths(place)).filter((path) => path !== except);
  const clients = paths.map((path) => ControlClient.open(path, signal));
  const others: JsonObject[] = [];
  const greeted = clients.map(async (client): Promise<Holder> => {
    const greeting = await client.next();
    if (greeting?.format === FORMAT) return { client, pid: Number(greeting.pid) };
    if (greeting !== undefined) others.push(greeting);
    throw new Error("It has not the connection.");
  });
  const late = AbortSignal.timeout(GREETING_MS);
  let holder: Holder | undefined;
  const closeOthers = () => {
    for (const client of clients) if (client !== holder?.client) client.close();
  };
  late.addEventListener("abort", closeOthers);
  holder = await Promise.any(greeted).catch(() => undefined);
  late.removeEventListener("abort", closeOthers);
  closeOthers();
  if (holder !== undefined || signal.aborted) return holder;
  for (const other of others) warn(...otherVersion(agent, other));
  if (late.aborted) throw silent(agent);
  return undefined;
}

function otherVersion(agent: string, { pid, version }: JsonObject): [text: string, hint: string] {
  const text = `Process ${pid} has the connection of ${agent} here, by version ${version} of the connector.`;
  return [
    `${text} This process has version ${VERSION}, so they share no connection.`,
    "Use the same version for both.",
  ];
}

function silent(agent: string): Failure {
  const text = `The process that has the control socket of ${agent} here does not answer at the moment.`;
  const hint = "Nothing was sent. Send it again later.";
  return new Failure("unreachable", text, hint, { retry: "later", outcome: "refused" });
}

/** A connection to the control socket of another process: JSON lines. */
export class ControlClient {
  readonly #socket: Socket;
  readonly #lines: AsyncIterator<string>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#lines = linesOf(socket)[Symbol.asyncIterator]();
  }

  /** The signal closes it. */
  static open(path: string, signal: AbortSignal): ControlClient {
    const socket = connect(path);
    const close = () => socket.destroy();
    // When this process itself was stopped, a timer fires before what came meanwhile is read: only the second time tells of silence.
    let silences = 0;
    const look = setInterval(() => {
      silences += 1;
      if (silences > 1) close();
    }, ALIVE.lookMs);
    socket.on("data", () => {
      silences = 0;
    });
    signal.addEventListener("abort", close);
    socket.once("close", () => {
      clearInterval(look);
      signal.removeEventListener("abort", close);
    });
    if (signal.aborted) close();
    return new ControlClient(socket);
  }

  write(line: object): void {
    this.#socket.write(`${jsonLine(line)}\n`);
  }

  /** The next line; undefined when the other process has ended, is not heard of any more, or says what is no JSON. */
  async next(): Promise<JsonObject | undefined> {
    try {
      let next = await this.#lines.next();
      while (!next.done && next.value === "") next = await this.#lines.next();
      return next.done ? undefined : membersOf(parseJson(next.value));
    } catch {
      this.close();
      return undefined;
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** What only the process that has an agent's connection can do. */
export interface ListenerTransport extends AgentTransport {
  /** The receipt of a session. Rejects with a Failure. */
  receipt(sessionId: string): Promise<unknown>;
}

/**
 * Over the control socket of a `relay listen` or `relay mcp` of the same user and agent; undefined when none runs.
 * @throws {Failure} as findHolder does.
 */
export async function listenerTransport(place: ControlPlace): Promise<ListenerTransport | undefined> {
  const holder = await findHolder(place);
  return holder && transportOver(holder.client, place.signal);
}

/** Of a request, as `serveRequestLines` writes them. */
const ANSWERS: ReadonlySet<unknown> = new Set(["accepted", "reply", "receipt", "refused"]);

function transportOver(client: ControlClient, signal: AbortSignal): ListenerTransport {
  const ask = async (request: object) => {
    client.write(request);
    const answer = await client.next();
    if (answer === undefined || !ANSWERS.has(answer.event)) throw disconnected(signal);
    return resultOf(answer);
  };
  return {
    name: "listener",
    send: async (request) => (await ask(request)) as unknown as ControlResult,
    ask: async (request) => await ask(request),
    receipt: async (sessionId) => (await ask({ receipt: sessionId })).receipt,
    close: async () => client.close(),
  };
}

function resultOf({ event, ref: _, ...members }: JsonObject): JsonObject {
  if (event !== "refused") return members;
  const [code = "failed", message = "", hint = ""] = [members.code, members.message, members.hint].map(textOf);
  const details = { retry: knownRetry(members.retry), outcome: knownOutcome(members.outcome) };
  // The hint is for who writes lines.
  throw new Failure(code, message, hintOf({ code, hint }), details);
}

function knownOutcome(value: unknown): "refused" | "unknown" {
  return value === "refused" ? value : "unknown";
}

function disconnected({ aborted }: AbortSignal): Failure {
  const hint = "The message may have been sent.";
  if (aborted) return new Failure("aborted", "Interrupted.", hint, { outcome: "unknown" });
  return new Failure("timeout", "The process that was to send it has ended or no longer answers.", hint, {
    outcome: "unknown",
  });
}

type Calls = Pick<AgentConnection, "send" | "ask" | "requestSession" | "approve" | "reject" | "receipt">;

interface Told {
  readonly state: (state: ConnectorState) => void;
  readonly emitter: Emitter;
}

/** The connection of an agent that another process of the same user holds, over the control socket of that process. */
export class FollowedConnection implements Calls {
  readonly #place: ControlPlace;
  readonly #client: ControlClient;

  constructor(place: ControlPlace, client: ControlClient) {
    this.#place = place;
    this.#client = client;
  }

  /** Undefined when no process of this user holds the agent's connection. @throws {Failure} as findHolder does. */
  static async find(place: ControlPlace): Promise<FollowedConnection | undefined> {
    const holder = await findHolder(place);
    return holder && new FollowedConnection(place, holder.client);
  }

  /** Emits what comes over the connection; resolves when the other process has ended, or the signal aborts. */
  async follow({ state, emitter }: Told, signal: AbortSignal): Promise<void> {
    const close = () => this.#client.close();
    signal.addEventListener("abort", close);
    if (signal.aborted) close();
    this.#client.write({ follow: true });
    for (let line = await this.#client.next(); line !== undefined; line = await this.#client.next()) {
      const { event, ...members } = line;
      if (event === "state") state(stateOf(members));
      if (event === "delivery") emitter.emit("delivery", this.#delivery(members));
      const notice = noticeOf(line);
      if (notice !== undefined) emitter.emit("notice", notice);
    }
    signal.removeEventListener("abort", close);
    close();
  }

  async send(to: string, payload: object, options: SendOptions = {}): Promise<Accepted> {
    const { type, taskId: task_id, seal, waitOnline: wait_online_ms, signal } = options;
    const request = { to, payload: payload as JsonObject, type, task_id, seal, wait_online_ms } as ControlRequest;
    return acceptedOf(await this.#call((transport) => transport.send(request), signal));
  }

  async ask(to: string, payload: object, options: AskOptions = {}): Promise<Delivery> {
    const { type, seal, timeoutMs: timeout_ms, waitOnline: wait_online_ms, signal } = options;
    const request = { to, ask: payload as JsonObject, type, seal, timeout_ms, wait_online_ms };
    return this.#delivery(await this.#call((transport) => transport.ask(request), signal));
  }

  async requestSession(to: string, proposal: SessionProposal, { signal }: CallOptions = {}): Promise<AcceptedSession> {
    return await this.#negotiate({ to, request: proposalMembers(proposal) }, signal);
  }

  async approve(sessionId: string, to: string, { signal }: CallOptions = {}): Promise<AcceptedSession> {
    return await this.#negotiate({ to, approve: sessionId }, signal);
  }

  async reject(sessionId: string, to: string, reason?: string, { signal }: CallOptions = {}): Promise<AcceptedSession> {
    return await this.#negotiate({ to, reject: sessionId, ...(reason !== undefined && { reason }) }, signal);
  }

  async receipt(sessionId: string): Promise<Receipt> {
    return (await this.#call((transport) => transport.receipt(sessionId), undefined)) as Receipt;
  }

  async #negotiate(request: ControlRequest, signal: AbortSignal | undefined): Promise<AcceptedSession> {
    const result = await this.#call((transport) => transport.send(request), signal);
    const { session_id = "", session_status } = result;
    return { ...acceptedOf(result), sessionId: session_id, status: session_status as AcceptedSession["status"] };
  }

  /** Each call over a socket of its own, whose end cancels it. @throws {Failure} */
  async #call<T>(call: (transport: ListenerTransport) => Promise<T>, cancelled: AbortSignal | undefined): Promise<T> {
    const signal = cancelled ? AbortSignal.any([this.#place.signal, cancelled]) : this.#place.signal;
    const transport = await listenerTransport({ ...this.#place, signal });
    if (transport === undefined) throw gone();
    try {
      return await call(transport);
    } finally {
      await transport.close();
    }
  }

  #delivery(members: JsonObject): Delivery {
    return deliveryOf(members, (to, payload, options) => this.send(to, payload, options));
  }
}

function acceptedOf({ envelope_id, target_delivery, duplicate = false }: ControlResult): Accepted {
  const { status, can_deliver_realtime: canDeliverRealtime } = target_delivery;
  return { envelopeId: envelope_id, delivery: { status, canDeliverRealtime } as Accepted["delivery"], duplicate };
}

function gone(): Failure {
  const hint = "This process takes over. Call again in a few seconds.";
  return new Failure("unreachable", "The process that had the agent's connection has ended.", hint, { retry: "later" });
}
