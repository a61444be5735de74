import { randomBytes } from "node:crypto";
import { connectorVersionIn } from "relay-protocol/contract/packages.ts";
import { relayHosts } from "relay-runtime/addresses.ts";
import { AuditLog } from "relay-runtime/audit-log.ts";
import type { HttpService } from "relay-runtime/http/http-service.ts";
import { KeyStore } from "relay-runtime/key-store.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import { readPackageIndex } from "relay-runtime/package-index.ts";
import { Tracing } from "relay-runtime/tracing/tracing.ts";
import { EnvelopeVerifier } from "relay-runtime/verification/envelope-verifier.ts";
import { SignatureVerifier } from "relay-runtime/verification/signature-verifier.ts";
import { auditWindowsAndKeys } from "relay-window/window/observe.ts";
import { createAdmin } from "./admin/listener.ts";
import { createAgents } from "./agents/agents.ts";
import { Authority } from "./agents/authority.ts";
import { Revocation } from "./agents/revocation.ts";
import { RouteRestoring } from "./agents/route-restoring.ts";
import type { Connection } from "./connection/connection.ts";
import { OutboxBudget } from "./connection/outbox.ts";
import { ConnectionRegistry } from "./connection/registry.ts";
import { createUpgrade } from "./connection/upgrade.ts";
import { deliverFrom } from "./delivery/deliveries.ts";
import { drain } from "./drain.ts";
import { DecisionRepeats } from "./intake/decision-repeats.ts";
import { createIntake } from "./intake/intake.ts";
import { Responder } from "./intake/responder.ts";
import { createPodCounters, createProbes, observePod } from "./metrics.ts";
import { createPodRedis } from "./pod-redis.ts";
import type { WsConnectorSettings } from "./settings.ts";
import { createTasks } from "./tasks.ts";
import { ConnectionQuota } from "./throttle/connection-quota.ts";

/**
 * One pod of the ws-connector: `handler` answers its probes, `upgrade` takes websockets.
 * @throws {SettingsError} if RELAY_PACKAGES_DIR has no valid index.
 */
export function createWsConnector(
  settings: WsConnectorSettings,
  { logger }: { readonly logger: Logger },
): Required<HttpService> {
  const pod = `pod_${randomBytes(12).toString("base64url")}`;
  const metrics = new ServiceMetrics("ws-connector");
  const counters = createPodCounters(metrics);
  const keys = new KeyStore({ path: settings.keysFile, logger });
  const audit = new AuditLog({ file: settings.auditFile, service: "ws-connector", logger });
  const tracing = new Tracing({ settings, service: "ws-connector", logger });
  const verifier = new SignatureVerifier();
  const redis = createPodRedis(settings, pod, logger);
  const { link, channel, window, acceptor, releaser, presenceStore } = redis;
  auditWindowsAndKeys(audit, window, keys);

  const authority = new Authority({ keys, hosts: relayHosts(settings) });
  const agents = createAgents(redis, { authority, audit, logger });
  const { registrar, agentConnections } = agents;
  const decisionRepeats = new DecisionRepeats(acceptor);
  const responder = new Responder({ authority, counters, audit, baseUrl: settings.baseUrl, logger });
  const receive = createIntake({
    ...agents,
    acceptor,
    authority,
    decisionRepeats,
    responder,
    tracing,
    acks: counters.acks,
    verifier: new EnvelopeVerifier(verifier),
  });
  const quota = new ConnectionQuota(settings, counters.limitReached);
  const outboxBudget = new OutboxBudget(settings);
  const connectorVersion = connectorVersionIn(readPackageIndex(settings.packagesDir));
  const connections = new ConnectionRegistry({
    settings,
    quota,
    outboxBudget,
    agents,
    counters,
    connectorVersion,
    receive,
  });
  const disconnect = (connection: Connection) => void drain([connection], { registrar, channel, releaser, drainMs: 0 });
  deliverFrom(redis, { connections, agents, delivered: counters.delivered, tracing, disconnect });

  const revocation = new Revocation({ keys, connections, registrar });
  const restoring = new RouteRestoring({ redis, connections, registrar, authority });
  window.onChange(() => restoring.all());
  channel.onHeard((partition) => void restoring.ofPartitions([partition]));
  const tasks = createTasks({
    ...agents,
    redis,
    connections,
    quota,
    outboxBudget,
    revocation,
    restoring,
    decisionRepeats,
  });

  const isReady = () => connections.takesNew && channel.ready;
  const probes = createProbes({ settings, link, window, presenceStore, keys, pod: { isReady, channel }, logger });
  observePod(metrics, { ...redis, keys, audit, connections, outboxBudget, probes });
  const admin = createAdmin({
    ...redis,
    settings,
    keys,
    connections,
    agentConnections,
    outboxBudget,
    counters,
    audit,
    logger,
  });

  let stopped: Promise<void> | undefined;
  const isStopped = () => stopped !== undefined;

  async function start(): Promise<void> {
    await Promise.all([keys.start(), verifier.start(), audit.start(), tracing.start()]);
    revocation.start();
    if (!isStopped()) await admin?.start();
    await redis.start(isStopped);
    if (isStopped()) return;
    tasks.start();
    connections.takeNew();
  }

  async function stop(): Promise<void> {
    connections.refuseNew();
    await drain(connections, { registrar, channel, releaser, drainMs: settings.drainMs });
    tasks.stop();
    await admin?.stop();
    keys.stop();
    await verifier.stop();
    await redis.stop();
    await audit.stop();
    await tracing.stop();
  }

  return {
    handler: probes.callback(),
    metrics,
    limitReached: counters.limitReached,
    upgrade: createUpgrade({ settings, connections, refused: counters.upgradeRefused }),
    start,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}
