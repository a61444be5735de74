import type { Tally } from "relay-runtime/metrics/service-metrics.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";
import type { PodAgents } from "../agents/agents.ts";
import type { Connection } from "../connection/connection.ts";
import { deliverFrame } from "../connection/frames.ts";
import type { ConnectionRegistry } from "../connection/registry.ts";
import type { PodRedis } from "../pod-redis.ts";

/** The pod remembers a delivery for at least this time, and at most twice as long. */
const REMEMBERED_MS = 60_000;
/** Above this number the pod forgets older deliveries sooner. Both sets together then hold about 30 MB. */
const MOST = 200_000;
/** At least 96 bits of the signature, and the end of the text after it. */
const TAIL_LENGTH = 22;

/**
 * Envelopes that a pod recently delivered, by the end of their signatures. No other text has the same end. A promoted
 * replica may have forgotten that an envelope was accepted, and may let it be delivered again. Source:
 * docs/security.md#a-failover.
 */
export class RecentDeliveries {
  #latest = new Set<string>();
  #former = new Set<string>();
  #since = Number.NEGATIVE_INFINITY;

  /** @param text canonical text with `sig` at its end. @param now monotonic ms. */
  has(text: string, now: number): boolean {
    this.#forget(now);
    const tail = text.slice(-TAIL_LENGTH);
    return this.#latest.has(tail) || this.#former.has(tail);
  }

  /** @param text the delivered canonical text. @param now monotonic ms. */
  add(text: string, now: number): void {
    this.#forget(now);
    // A copy, because a slice would keep the whole received text in memory.
    this.#latest.add(Buffer.from(text.slice(-TAIL_LENGTH)).toString("latin1"));
  }

  #forget(now: number): void {
    const age = now - this.#since;
    if (age < REMEMBERED_MS && this.#latest.size < MOST) return;
    this.#former = age < 2 * REMEMBERED_MS ? this.#latest : new Set();
    this.#latest = new Set();
    this.#since = REMEMBERED_MS <= age && age < 2 * REMEMBERED_MS ? this.#since + REMEMBERED_MS : now;
  }
}

export interface DeliveryDependencies {
  readonly connections: ConnectionRegistry;
  readonly agents: Pick<PodAgents, "registrar" | "agentConnections">;
  /** Deliveries, by `sent`, `connection_gone` or, over several partitions, `repeated`. */
  readonly delivered: Tally;
  readonly tracing: Tracing;
  /** Closes a connection after its promised deliveries, so that the client comes back. */
  readonly disconnect: (connection: Connection) => void;
}

/**
 * Passes the lines of the pod's channel to the connections, in order:
 * - A delivery goes to its connection if that connection has, or may have, the agent.
 * - Otherwise it goes only to the connection of this pod that took the agent later. Other connections may have a
 *   revoked key.
 * - Without such a connection, the route was left behind. The pod releases it, so that the agent is stale at once. A
 *   probe of such a route has the same effect.
 * - Over several partitions the pod skips a repeated delivery, because a promoted replica may have forgotten the first.
 * - `disconnect`, from the operator, closes a connection only if it still has, or may have, the agent.
 *
 * Source: docs/protocol.md#presence, docs/redis.md#routes-left-behind.
 */
export function deliverFrom(
  { channel, releaser, epochs }: Pick<PodRedis, "channel" | "releaser" | "epochs">,
  { connections, agents, delivered, tracing, disconnect }: DeliveryDependencies,
): void {
  const { registrar, agentConnections } = agents;
  const mayHave = (id: string, agent: string) => {
    const connection = connections.find(id);
    return connection?.agents.mayOwn(agent) ? connection : undefined;
  };
  const recent = channel.partitions > 1 ? new RecentDeliveries() : undefined;
  /** The outcome of the last delivery, for a `traced` line after it. */
  const last = { outcome: "", startedAt: 0 };
  const settle = (outcome: string) => {
    delivered.add(outcome);
    last.outcome = outcome;
  };
  channel.listen({
    deliver: (id, epoch, agent, sessionId, text) => {
      if (tracing.isOn) last.startedAt = performance.now();
      if (recent?.has(text, performance.now())) {
        settle("repeated");
        return;
      }
      const connection = mayHave(id, agent) ?? agentConnections.takenAfter(agent, epoch);
      const isSent = connection?.send(deliverFrame(sessionId, text)) ?? false;
      settle(isSent ? "sent" : "connection_gone");
      if (isSent) recent?.add(text, performance.now());
      else releaser.release([{ agent, connection: id, epoch }]);
    },
    superseded: (id, epoch, agent) => {
      epochs.note(agent, epoch);
      const connection = connections.find(id);
      if (connection !== undefined) registrar.superseded(connection, agent, epoch);
    },
    traced: (traceparent) => {
      const { outcome, startedAt } = last;
      tracing.begin("deliver", { kind: "consumer", startedAt, traceparent })?.end({ "agent_relay.outcome": outcome });
    },
    probe: (id, epoch, agent) => {
      if (mayHave(id, agent) === undefined) releaser.release([{ agent, connection: id, epoch }]);
    },
    disconnect: (id, epoch, agent) => {
      const owner = mayHave(id, agent);
      if (owner === undefined) releaser.release([{ agent, connection: id, epoch }]);
      else disconnect(owner);
    },
  });
}
