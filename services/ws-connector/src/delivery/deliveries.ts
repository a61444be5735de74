import type { Tally } from "relay-runtime/metrics/service-metrics.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import type { KnownEpochs } from "relay-window/presence/route-restoring.ts";
import type { RouteReleaser } from "relay-window/presence/routes.ts";
import type { Registrar } from "../agents/registrar.ts";
import type { AgentConnections } from "../connection/agent-connections.ts";
import type { Connection } from "../connection/connection.ts";
import type { ConnectionRegistry } from "../connection/connection-registry.ts";
import { deliverFrame } from "../connection/frames.ts";
import { RecentDeliveries } from "./recent-deliveries.ts";

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
      const connection = mayHave(id, agent) ?? agentConnections.since(agent, epoch);
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
