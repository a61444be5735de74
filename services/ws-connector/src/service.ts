import { randomBytes } from "node:crypto";
import { connectorVersionIn } from "relay-protocol/contract/packages.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { AuditLog } from "relay-runtime/audit-log.ts";
import { FILE_POLL_MS } from "relay-runtime/file-follower.ts";
import type { HttpService } from "relay-runtime/http/http-service.ts";
import { KeyStore } from "relay-runtime/key-store.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import { readPackageIndex } from "relay-runtime/package-index.ts";
import { relayHosts } from "relay-runtime/relay-hosts.ts";
import { Tracing } from "relay-runtime/tracing/tracing.ts";
import { EnvelopeVerifier } from "relay-runtime/verification/envelope-verifier.ts";
import { SignatureVerifier } from "relay-runtime/verification/signature-verifier.ts";
import { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { leaseConnections, PodChannel } from "relay-window/channel/pod-channel.ts";
import { PrincipalShares } from "relay-window/limits/principal-bounds.ts";
import { HeartbeatWriter } from "relay-window/presence/heartbeat-writer.ts";
import { PresenceStore } from "relay-window/presence/presence.ts";
import { KnownEpochs, RouteRestorer } from "relay-window/presence/route-restoring.ts";
import { CongestionMarks, RELEASE_RETRY_MS, RouteReleaser } from "relay-window/presence/routes.ts";
import { redisAt } from "relay-window/redis/connect.ts";
import { REDIS_LIMITS } from "relay-window/redis/limits.ts";
import { notePromotions } from "relay-window/window/data-loss.ts";
import { auditWindowsAndKeys, ReachLog } from "relay-window/window/observe.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { createAdmin } from "./admin/listener.ts";
import { CongestionNotices } from "./agents/congestion.ts";
import { Heartbeats, IntakeBatch } from "./agents/heartbeats.ts";
import { AgentConnections, Registrar } from "./agents/registrar.ts";
import { Revocation } from "./agents/revocation.ts";
import { RouteRestoring } from "./agents/route-restoring.ts";
import type { Connection } from "./connection/connection.ts";
import { OUTBOX_CHECK_MS, OutboxBudget } from "./connection/outbox.ts";
import { ConnectionRegistry } from "./connection/registry.ts";
import { createUpgrade } from "./connection/upgrade.ts";
import { deliverFrom } from "./delivery/deliveries.ts";
import { drain, PeriodicTasks } from "./drain.ts";
import { Authority } from "./intake/authority.ts";
import { DECISION_REPEAT_MS, DecisionRepeats } from "./intake/decision-repeats.ts";
import { receiveText } from "./intake/intake.ts";
import { Responder } from "./intake/responder.ts";
import { createPodCounters, createProbes, observePod } from "./metrics.ts";
import type { WsConnectorSettings } from "./settings.ts";
import { ConnectionQuota } from "./throttle/connection-quota.ts";
import { ShareLeases } from "./throttle/rates.ts";

const MINUTE_MS = 60_000;

/**
 * One pod of the ws-connector: `handler` answers its probes, `upgrade` takes websockets.
 * @throws {SettingsError} if RELAY_PACKAGES_DIR has no valid index.
 */
export function createWsConnector(
  settings: WsConnectorSettings,
  { logger }: { readonly logger: Logger },
): Required<HttpService> {
  const { redisUrl: url, partitions, offlineAfterMs, proofFreshnessMs, deployId, baseUrl } = settings;
  const { drainMs, gatherMs, trustedProxyHops, alternateWsPath } = settings;
  const pod = `pod_${randomBytes(12).toString("base64url")}`;
  const metrics = new ServiceMetrics("ws-connector");
  const counters = createPodCounters(metrics);

  // While Redis is away, a pod keeps its sockets and answers `unavailable`. It keeps releases and sends them again.
  // When Redis is back, the pod restores the routes that Redis may have lost.
  const link = redisAt({ url, name: "ws-connector", logger });
  const channel = new PodChannel({ calls: link, pod, partitions });
  const window = new ProcessWindow({ link, partitions, deployId, logger });
  notePromotions(link, window, logger);
  const reachLog = new ReachLog({ link, partitions, logger });
  const { agentsPerKey, agentsPerIssuer } = settings;
  const epochs = new KnownEpochs(partitions);
  const acceptance = { link, window, pod, epochs, offlineAfterMs, proofFreshnessMs, agentsPerKey, agentsPerIssuer };
  const acceptor = new Acceptor({ ...acceptance, gatherMs, logger });
  const releaser = new RouteReleaser({ link, window, pod });
  const presenceStore = new PresenceStore({ link, window, offlineAfterMs });

  const keys = new KeyStore({ path: settings.keysFile, logger });
  const audit = new AuditLog({ file: settings.auditFile, service: "ws-connector", logger });
  auditWindowsAndKeys(audit, window, keys);
  const tracing = new Tracing({ settings, service: "ws-connector", logger });
  const verifier = new SignatureVerifier();
  const authority = new Authority({ keys, hosts: relayHosts(settings) });
  const heartbeatWriter = new HeartbeatWriter({ ...acceptance, logger });
  const heartbeats = new Heartbeats({ writer: heartbeatWriter, channel, logger });
  const batch = new IntakeBatch({ logger });
  const agentConnections = new AgentConnections();
  const decisionRepeats = new DecisionRepeats(acceptor);
  const registrar = new Registrar({ authority, channel, releaser, heartbeats, batch, agentConnections, audit });
  const { acks, refusals, keyRefusals } = counters;
  const intake = {
    authority,
    verifier: new EnvelopeVerifier(verifier),
    acceptor,
    decisionRepeats,
    registrar,
    heartbeats,
    batch,
    tracing,
    acks,
    responder: new Responder({ authority, refusals, keyRefusals, audit, baseUrl, logger }),
  };
  const quota = new ConnectionQuota(settings, counters.limitReached);
  const outboxBudget = new OutboxBudget(settings);
  const congestion = new CongestionNotices(new CongestionMarks({ link, window, pod }));
  const connections = new ConnectionRegistry({
    settings,
    quota,
    outboxBudget,
    congestion,
    registrar,
    counters,
    connectorVersion: connectorVersionIn(readPackageIndex(settings.packagesDir)),
    receive: (connection, text) => receiveText(connection, text, intake),
  });
  const restoring = new RouteRestoring({
    restorer: new RouteRestorer(acceptance),
    releaser,
    connections,
    registrar,
    authority,
  });
  window.onChange(() => restoring.all());
  channel.onHeard((partition) => void restoring.ofPartitions([partition]));
  const disconnect = (connection: Connection) => {
    void drain([connection], { registrar, channel, releaser, drainMs: 0 });
  };
  const { delivered } = counters;
  deliverFrom(channel, { connections, registrar, agentConnections, releaser, epochs, delivered, tracing, disconnect });

  const shareLeases = new ShareLeases(new PrincipalShares({ link, partitions, pod }), connections.rates);
  const revocation = new Revocation({ keys, connections, registrar });
  const tasks = new PeriodicTasks([
    { everyMs: FILE_POLL_MS, run: () => revocation.checkExpiry() },
    { everyMs: CONNECTION_LIMITS.silenceCheckMs, run: () => connections.checkSilence() },
    { everyMs: CONNECTION_LIMITS.opensWindowMs, run: () => quota.forgetClosed(performance.now()) },
    { everyMs: OUTBOX_CHECK_MS, run: () => outboxBudget.check() },
    { everyMs: MINUTE_MS, run: () => connections.endMinute(performance.now()) },
    { everyMs: RELEASE_RETRY_MS, run: () => void releaser.flush() },
    { everyMs: RELEASE_RETRY_MS, run: () => void congestion.flush() },
    { everyMs: DECISION_REPEAT_MS, run: () => decisionRepeats.flush(performance.now()) },
    { everyMs: REDIS_LIMITS.loopbackIntervalMs, run: () => void restoring.flush() },
    { everyMs: REDIS_LIMITS.heartbeatGatherMs, run: () => heartbeats.flush() },
    { everyMs: REDIS_LIMITS.shareRenewMs, run: () => void shareLeases.renew() },
    {
      everyMs: REDIS_LIMITS.shareRenewMs,
      run: () => void leaseConnections(link, pod, connections.size).catch(() => {}),
    },
    { everyMs: REDIS_LIMITS.pruneIntervalMs, run: () => void presenceStore.prune().catch(() => {}) },
  ]);

  const isReady = () => connections.takesNew && channel.ready;
  const probes = createProbes({
    link,
    window,
    presenceStore,
    keys,
    pod: { isReady, channel },
    logger,
    trustedProxyHops,
    alternateWsPath,
  });
  observePod(metrics, {
    keys,
    audit,
    connections,
    outboxBudget,
    link,
    window,
    channel,
    acceptor,
    heartbeatWriter,
    probes,
  });

  const watched = { window, presenceStore, keys, connections, agentConnections, outboxBudget, counters };
  const admin = createAdmin({ ...watched, settings, pod, link, audit, logger });

  let stopped: Promise<void> | undefined;

  async function start(): Promise<void> {
    await Promise.all([keys.start(), verifier.start(), audit.start(), tracing.start()]);
    revocation.start();
    if (stopped === undefined) await admin?.start();
    if (stopped === undefined) await link.start();
    if (stopped === undefined) await channel.start();
    if (stopped === undefined) await reachLog.start();
    if (stopped === undefined) await window.start();
    if (stopped !== undefined) return;
    tasks.start();
    connections.takeNew();
  }

  async function stop(): Promise<void> {
    connections.refuseNew();
    await drain(connections, { registrar, channel, releaser, drainMs });
    tasks.stop();
    await admin?.stop();
    await reachLog.stop();
    await window.stop();
    keys.stop();
    await verifier.stop();
    await channel.stop();
    await link.stop();
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
