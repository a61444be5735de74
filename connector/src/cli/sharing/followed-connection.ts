import type { Emitter } from "../../emitter.ts";
import type { AgentConnection } from "../../mcp/agent-connection.ts";
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
import { proposalMembers } from "../../wire-mapping.ts";
import type { ControlClient } from "../control/client.ts";
import { deliveryOf, noticeOf, stateOf } from "../control/follow-lines.ts";
import { findHolder } from "../control/holder.ts";
import type { ControlPlace } from "../control/place.ts";
import type { ControlRequest, ControlResult } from "../control/request.ts";
import { Failure } from "../failure.ts";
import { type ListenerTransport, listenerTransport } from "../transports/listener.ts";

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
    const client = await findHolder(place);
    return client && new FollowedConnection(place, client);
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
  const hint = "This process takes over: call again in a few seconds.";
  return new Failure("unreachable", "The process that had the agent's connection has ended.", hint, { retry: "later" });
}
