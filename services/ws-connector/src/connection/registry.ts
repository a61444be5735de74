import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { type AnnouncedLimits, announcedLimits } from "relay-protocol/contract/frames.ts";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { labelsOf } from "relay-window/limits/principals.ts";
import type { WebSocket } from "ws";
import type { PodAgents } from "../agents/agents.ts";
import type { PodCounters } from "../metrics.ts";
import type { WsConnectorSettings } from "../settings.ts";
import type { ConnectionQuota } from "../throttle/connection-quota.ts";
import { FairScheduler } from "../throttle/fair-scheduler.ts";
import { type PodRates, PrincipalRates, TokenBuckets } from "../throttle/rates.ts";
import type { ThrottleContext } from "../throttle/throttle.ts";
import { Connection, type ConnectionContext } from "./connection.ts";
import { slowDownNotice } from "./frames.ts";
import type { OutboxBudget, OutboxLimit } from "./outbox.ts";

/** Limits that other senders can make a connection reach. They do not count against its key. */
const CAUSED_BY_SENDERS: ReadonlySet<LimitName> = new Set<OutboxLimit>(["outbox", "outbox_total", "outbox_stalled"]);

export interface RegistryOptions {
  readonly settings: Pick<WsConnectorSettings, "envelopesPerSecond" | "bytesPerSecond">;
  readonly quota: ConnectionQuota;
  readonly outboxBudget: OutboxBudget;
  readonly agents: Pick<PodAgents, "registrar" | "congestion">;
  readonly counters: PodCounters;
  /** The version of the connector that the relay hands out. */
  readonly connectorVersion: string | undefined;
  readonly receive: (connection: Connection, text: string) => void;
}

/** The connections of the pod. A connection stays here from its upgrade until its socket is gone. */
export class ConnectionRegistry {
  readonly #connections = new Map<string, Connection>();
  readonly #quota: ConnectionQuota;
  readonly #counters: PodCounters;
  readonly #throttle: ThrottleContext;
  readonly #context: ConnectionContext;
  #takesNew = false;

  constructor(options: RegistryOptions) {
    const { settings, quota, outboxBudget, agents, counters, connectorVersion, receive } = options;
    const { registrar, congestion } = agents;
    this.#quota = quota;
    this.#counters = counters;
    const limits = announcedLimits(settings);
    this.#throttle = throttleContext(limits);
    this.#context = {
      throttle: this.#throttle,
      outboxBudget,
      greeting: { limits, connectorVersion },
      events: {
        text: receive,
        registered: (connection) => quota.registered(connection),
        refused: (code) => counters.refusals.add(code),
        limitReached: (limit, principal) => {
          counters.limitReached(limit);
          if (principal !== undefined && !CAUSED_BY_SENDERS.has(limit)) counters.keyRefusals.add(labelsOf(principal));
        },
        congestionChanged: (connection) => congestion.changed(connection),
        closing: (connection) => {
          quota.closing(connection);
          registrar.releaseAll(connection);
        },
        closed: (connection, code) => {
          quota.closed(connection);
          this.#connections.delete(connection.id);
          counters.closed(code);
        },
      },
    };
  }

  /** The rates at which the connections may send. */
  get rates(): PodRates {
    return this.#throttle;
  }

  get takesNew(): boolean {
    return this.#takesNew;
  }

  get size(): number {
    return this.#connections.size;
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#connections.values();
  }

  /** Undefined if the connection is closing, or is not on this pod. */
  find(id: string): Connection | undefined {
    const connection = this.#connections.get(id);
    return connection?.isClosing ? undefined : connection;
  }

  takeNew(): void {
    this.#takesNew = true;
  }

  /** Refuses new connections. Open connections stay. */
  refuseNew(): void {
    this.#takesNew = false;
  }

  /** @returns the error for a new connection from this address; null if the pod takes it. */
  refusalOf(address: string): ServiceError | null {
    if (this.#takesNew) return this.#quota.refusalOf(address, performance.now());
    return new ServiceError("over_capacity", { retryAfterMs: CONNECTION_LIMITS.capacityRetryAfterMs });
  }

  add(socket: WebSocket, stream: Duplex, address: string): void {
    const id = `con_${randomBytes(12).toString("base64url")}`;
    const addressCounts = this.#quota.countsOf(address);
    const connection = new Connection(this.#context, { id, socket, stream, addressCounts });
    this.#quota.opened(connection);
    this.#connections.set(id, connection);
    this.#counters.opened();
    connection.open();
  }

  checkSilence(): void {
    for (const connection of this) connection.checkSilence();
  }

  /** Ends the minute in which the pod counts envelopes and bytes per principal. @param now monotonic ms. */
  endMinute(now: number): void {
    this.#throttle.principals.endMinute(now);
    this.#throttle.principalBytes.endMinute(now);
  }
}

/** The limits that the pod enforces are the limits that `hello` announces. */
function throttleContext(limits: AnnouncedLimits): ThrottleContext {
  const { envelopes_per_second, envelopes_burst, bytes_per_second, bytes_burst } = limits;
  const { keyShare, keyBytesShare } = CONNECTION_LIMITS;
  return {
    envelopes: new TokenBuckets(envelopes_per_second, envelopes_burst),
    bytes: new TokenBuckets(bytes_per_second, bytes_burst),
    // A key has one burst for all its connections. Several bursts would keep the pod busy long enough for others to
    // notice.
    principals: new PrincipalRates(envelopes_per_second * keyShare, envelopes_burst),
    principalBytes: new PrincipalRates(bytes_per_second * keyBytesShare, bytes_burst),
    scheduler: new FairScheduler(),
    slowDownNotice: slowDownNotice(envelopes_per_second, bytes_per_second),
  };
}
