import type { Tally } from "@agent-relay/shared/metrics/service-metrics.ts";
import type { RouteReleaser } from "@agent-relay/shared/window/routes.ts";
import type { Connection } from "./connection.ts";
import { deliverFrame } from "./frames.ts";
import type { PodChannel } from "./pod-channel.ts";
import type { Registrar } from "./registrar.ts";

/**
 * From the pod's channel to the sockets. A line for a connection that the pod does not know, or that is closing, means
 * that its route outlived it: the route is released, and the agent is stale at once. Source: protocol, section 7.
 */
export function deliverTo(
  connections: ReadonlyMap<string, Connection>,
  {
    channel,
    releaser,
    registrar,
    delivered,
  }: { channel: PodChannel; releaser: RouteReleaser; registrar: Registrar; delivered: Tally },
): void {
  const live = (id: string) => {
    const connection = connections.get(id);
    return connection === undefined || connection.isClosing ? null : connection;
  };
  channel.listen({
    deliver: (id, epoch, agent, sessionId, text) => {
      const taken = live(id)?.send(deliverFrame(sessionId, text)) ?? false;
      delivered.add(taken ? "sent" : "connection_gone");
      if (!taken) releaser.release([{ agent, connection: id, epoch }]);
    },
    superseded: (id, epoch, agent) => {
      const connection = live(id);
      if (connection !== null) registrar.supersede(connection, agent, epoch);
    },
    probe: (id, epoch, agent) => {
      if (live(id) === null) releaser.release([{ agent, connection: id, epoch }]);
    },
  });
}
