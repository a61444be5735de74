import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { CLOSE_CODES, RelayError } from "@agent-relay/shared/contract/errors.ts";
import { CONNECTION_LIMITS, KEYS_FILE_POLL_MS, REDIS_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import type { HttpService } from "@agent-relay/shared/http/serving.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import { Verifier } from "@agent-relay/shared/signing/verifier.ts";
import { Acceptor } from "@agent-relay/shared/window/acceptor.ts";
import { PresenceBoard } from "@agent-relay/shared/window/presence.ts";
import { ProcessWindow } from "@agent-relay/shared/window/process-window.ts";
import { RedisLink } from "@agent-relay/shared/window/redis-link.ts";
import { RouteReleaser } from "@agent-relay/shared/window/routes.ts";
import type { WebSocket } from "ws";
import { Admission } from "./admission.ts";
import { createProbes } from "./app.ts";
import { Connection, type ConnectionTerms } from "./connection.ts";
import { deliverTo } from "./deliveries.ts";
import { drain } from "./drain.ts";
import { takeIn } from "./intake.ts";
import { createPodMetrics } from "./metrics.ts";
import { PodChannel } from "./pod-channel.ts";
import { Registrar } from "./registrar.ts";
import type { WsConnectorSettings } from "./settings.ts";
import { TokenBuckets } from "./token-bucket.ts";
import { createUpgrade } from "./upgrade.ts";

/** One pod of the ws-connector: `handler` answers its probes, `upgrade` takes websockets. */
export function createWsConnector(
  settings: WsConnectorSettings,
  { logger }: { readonly logger: Logger },
): Required<HttpService> {
  const { redisUrl: url, partitions, offlineAfterMs, drainMs } = settings;
  const pod = randomId("pod");
  const link = new RedisLink({ url, name: "ws-connector", logger });
  const channel = new PodChannel({ url, publisher: link, pod, partitions, logger });
  const window = new ProcessWindow({ link, partitions, deployId: settings.deployId, logger });
  const keys = new KeyStore({ path: settings.keysFile, logger });
  const verifier = new Verifier();
  const releaser = new RouteReleaser({ link, partitions, pod });
  const acceptor = new Acceptor({ link, window, partitions, pod, offlineAfterMs, logger });
  const board = new PresenceBoard({ link, partitions, offlineAfterMs });
  const registrar = new Registrar({ keys, channel, releaser });
  const connections = new Map<string, Connection>();
  const timers: NodeJS.Timeout[] = [];
  let takesConnections = false;
  let stopped: Promise<void> | undefined;

  const probes = createProbes({
    window,
    board,
    pod: { connectionCount: () => connections.size, isReady: () => takesConnections && channel.ready },
    logger,
    trustedProxyHops: settings.trustedProxyHops,
  });
  const metrics = createPodMetrics({ connections, link, channel, acceptor, probes });
  const { refusals, delivered, struck } = metrics;
  const admission = new Admission(settings, struck);

  deliverTo(connections, { channel, releaser, registrar, delivered });

  const { envelopesPerSecond, outboxBytes } = settings;
  const intakeDependencies = { keys, verifier, acceptor, registrar, refusals };
  const terms: ConnectionTerms = {
    allowance: new TokenBuckets(envelopesPerSecond, envelopesPerSecond * CONNECTION_LIMITS.envelopeBurstSeconds),
    outboxBytes,
    events: {
      text: (connection, text) => takeIn(connection, text, intakeDependencies),
      proven: (connection) => admission.settled(connection),
      struck,
      closing: (connection) => {
        admission.settled(connection);
        registrar.releaseAll(connection);
      },
      closed: (connection, code) => {
        admission.closed(connection);
        connections.delete(connection.id);
        metrics.closed(code);
      },
    },
  };

  function opened(socket: WebSocket, stream: Duplex, address: string): void {
    const caller = admission.callerOf(address);
    const connection = new Connection(terms, { id: randomId("con"), socket, stream, caller });
    admission.opened(connection);
    connections.set(connection.id, connection);
    metrics.opened();
    connection.open();
  }

  function refusalOf(address: string): RelayError | null {
    if (takesConnections) return admission.refusalOf(address, performance.now());
    return new RelayError("over_capacity", { retryAfterMs: CONNECTION_LIMITS.capacityRetryAfterMs });
  }

  function auditKeys(): void {
    for (const connection of connections.values()) registrar.audit(connection);
  }

  /** Keys expire by the clock too, without a change of their file. */
  let auditedAt = 0;
  function auditExpiry(): void {
    const now = Date.now();
    if (keys.ring.nextTransition(auditedAt) <= now) auditKeys();
    auditedAt = now;
  }

  function pingAll(): void {
    for (const connection of connections.values()) connection.ping();
  }

  /** Nothing promised to a connection is lost to its close: its routes go first, then all that was published comes in. */
  async function dismiss(connection: Connection): Promise<void> {
    connection.pause();
    releaser.release(connection.agents.routes());
    await releaser.flush();
    await channel.caughtUp();
    connection.close(CLOSE_CODES.goingAway);
  }

  async function start(): Promise<void> {
    await Promise.all([keys.start(), verifier.start()]);
    keys.onChange(auditKeys);
    auditedAt = Date.now();
    await link.start();
    await channel.start();
    timers.push(
      setInterval(auditExpiry, KEYS_FILE_POLL_MS),
      setInterval(pingAll, CONNECTION_LIMITS.pingIntervalMs),
      setInterval(() => admission.forget(performance.now()), CONNECTION_LIMITS.opensWindowMs),
      setInterval(() => void board.prune().catch(() => {}), REDIS_LIMITS.pruneIntervalMs),
    );
    takesConnections = true;
  }

  async function stop(): Promise<void> {
    takesConnections = false;
    await drain(connections, drainMs, dismiss);
    for (const timer of timers) clearInterval(timer);
    await releaser.flush();
    keys.stop();
    await verifier.stop();
    await channel.stop();
    await link.stop();
  }

  return {
    handler: probes.callback(),
    metrics: metrics.registry,
    upgrade: createUpgrade({
      alternatePath: settings.alternateWsPath,
      allowedOrigins: settings.allowedOrigins,
      trustedProxyHops: settings.trustedProxyHops,
      refusalOf,
      opened,
      refused: metrics.upgradeRefused,
      logger,
    }),
    start,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

function randomId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString("base64url")}`;
}
