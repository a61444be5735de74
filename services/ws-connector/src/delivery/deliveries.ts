import type { Tally } from "relay-runtime/metrics/service-metrics.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import type { KnownEpochs } from "relay-window/presence/route-restoring.ts";
import type { RouteReleaser } from "relay-window/presence/routes.ts";
import type { AgentConnections, Registrar } from "../agents/registrar.ts";
import type { Connection } from "../connection/connection.ts";
import { deliverFrame } from "../connection/frames.ts";
import type { ConnectionRegistry } from "../connection/registry.ts";

/** At least so long what was delivered is remembered, and at most twice as long. */
const REMEMBERED_MS = 60_000;
/** Beyond so many what came before them is forgotten sooner: with those it holds about 30 MB. */
const MOST = 200_000;
/** 96 bits or more of the signature, and what ends the text behind it. */
const TAIL_LENGTH = 22;

/**
 * What a pod wrote to connections lately, by the end of each signature, which nobody else's text has: a replica that took over
 * may have forgotten that an envelope was accepted, and have it delivered again. Source: docs/security.md#a-failover.
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

  /** @param text was written to a connection. @param now monotonic ms. */
  add(text: string, now: number): void {
    this.#forget(now);
    // A copy: a slice would keep all that came with the text in the memory.
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
  readonly registrar: Registrar;
  readonly agentConnections: AgentConnections;
  readonly releaser: RouteReleaser;
  /** Those that the pod knows. */
  readonly epochs: KnownEpochs;
  /** By `sent`, `connection_gone` or, over several partitions, `repeated`. */
  readonly delivered: Tally;
  readonly tracing: Tracing;
  /** Closes a connection, once what was promised to it has come in, for its client to come back. */
  readonly disconnect: (connection: Connection) => void;
}

/**
 * Passes what comes in over the pod's channel on to the connections. A delivery to a connection that does not have the agent goes to the one
 * of this pod that has taken it since, in the order of the channel, and to nobody else: the agent's key may be revoked there. Without one, the
 * delivery tells, as such a probe does, of a route that was left behind: it is released, so that the agent is stale at once.
 * What was delivered lately is not delivered again, where a replica that took over may have forgotten it: one Redis forgets nothing alone.
 * The operator has the connection of an agent closed in the same way: who has lost the agent meanwhile keeps its connection.
 * Source: docs/protocol.md#presence, docs/redis.md#routes-left-behind.
 */
export function deliverFrom(
  channel: PodChannel,
  { connections, registrar, agentConnections, releaser, epochs, delivered, tracing, disconnect }: DeliveryDependencies,
): void {
  const mayHave = (id: string, agent: string) => {
    const connection = connections.find(id);
    return connection?.agents.mayOwn(agent) ? connection : undefined;
  };
  const recent = channel.partitions > 1 ? new RecentDeliveries() : undefined;
  /** What became of the last delivery, for a line behind it that says it is of a trace. */
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
