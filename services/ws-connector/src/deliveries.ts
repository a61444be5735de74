import type { Tally } from "runtime/metrics/service-metrics.ts";
import type { KnownEpochs } from "window/known-epochs.ts";
import type { PodChannel } from "window/pod-channel.ts";
import type { RouteReleaser } from "window/routes.ts";
import type { ConnectionRegistry } from "./connection-registry.ts";
import { deliverFrame } from "./frames.ts";
import type { Holders } from "./holders.ts";
import { RecentDeliveries } from "./recent-deliveries.ts";
import type { Registrar } from "./registrar.ts";

export interface DeliveryDependencies {
  readonly connections: ConnectionRegistry;
  readonly registrar: Registrar;
  readonly holders: Holders;
  readonly releaser: RouteReleaser;
  /** Those that the pod knows. */
  readonly epochs: KnownEpochs;
  /** By `sent`, `connection_gone` or, over several partitions, `repeated`. */
  readonly delivered: Tally;
}

/**
 * Passes what comes in over the pod's channel on to the connections. A delivery to a connection that does not have the agent goes to the one
 * of this pod that has taken it since, in the order of the channel, and to nobody else: the agent's key may be revoked there. Without one, the
 * delivery tells, as such a probe does, of a route that was left behind: it is released, so that the agent is stale at once.
 * What was delivered lately is not delivered again, where a replica that took over may have forgotten it: one Redis forgets nothing alone.
 * Source: docs/protocol.md#presence, docs/redis.md#routes-left-behind.
 */
export function deliverFrom(
  channel: PodChannel,
  { connections, registrar, holders, releaser, epochs, delivered }: DeliveryDependencies,
): void {
  const mayHave = (id: string, agent: string) => {
    const connection = connections.find(id);
    return connection?.agents.mayOwn(agent) ? connection : undefined;
  };
  const recent = channel.partitions > 1 ? new RecentDeliveries() : undefined;
  channel.listen({
    deliver: (id, epoch, agent, sessionId, text) => {
      if (recent?.has(text, performance.now())) {
        delivered.add("repeated");
        return;
      }
      const connection = mayHave(id, agent) ?? holders.since(agent, epoch);
      const isSent = connection?.send(deliverFrame(sessionId, text)) ?? false;
      delivered.add(isSent ? "sent" : "connection_gone");
      if (isSent) recent?.add(text, performance.now());
      else releaser.release([{ agent, connection: id, epoch }]);
    },
    superseded: (id, epoch, agent) => {
      epochs.note(agent, epoch);
      const connection = connections.find(id);
      if (connection !== undefined) registrar.superseded(connection, agent, epoch);
    },
    probe: (id, epoch, agent) => {
      if (mayHave(id, agent) === undefined) releaser.release([{ agent, connection: id, epoch }]);
    },
  });
}
