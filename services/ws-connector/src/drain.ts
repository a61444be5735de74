import { setTimeout as delay } from "node:timers/promises";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import type { RouteReleaser } from "relay-window/presence/routes.ts";
import type { Registrar } from "./agents/registrar.ts";
import type { Connection } from "./connection/connection.ts";
import { drainingNotice } from "./connection/frames.ts";

/** Most ms between two closes. So the other pods do not get all clients at once. */
const PACE_MS = 5;
/**
 * The time of the first close, if the drain lasts that long. Notices name at most half of this time. A connector adds
 * up to half of the named time, and registers elsewhere before its close.
 */
const FIRST_CLOSE_MS = 2000;

export interface DrainOptions {
  readonly registrar: Registrar;
  readonly channel: PodChannel;
  readonly releaser: RouteReleaser;
  /** The closes end within this time, or earlier if there are few. 0 = all close at once. */
  readonly drainMs: number;
}

/**
 * Sends every client to another pod. The notices come first. The closes follow after the time that the notices name.
 * Deliveries continue until a connection's own close. Source: docs/operations.md#scale.
 */
export async function drain(connections: Iterable<Connection>, options: DrainOptions): Promise<void> {
  const open = [...connections];
  const firstCloseMs = Math.min(FIRST_CLOSE_MS, options.drainMs);
  for (const connection of open) connection.send(drainingNotice(reconnectAfterMs(firstCloseMs)));
  if (firstCloseMs > 0) await unlessGone(open, firstCloseMs);
  const startedAt = performance.now();
  const span = Math.min(options.drainMs - firstCloseMs, open.length * PACE_MS);
  const closes: Promise<void>[] = [];
  for (const [index, connection] of open.entries()) {
    const waitMs = startedAt + (index * span) / open.length - performance.now();
    if (waitMs > 0) await delay(waitMs);
    closes.push(closeAfterDeliveries(connection, options));
  }
  await Promise.all(closes);
  await options.releaser.flush();
}

/** A random time between a twentieth and half of the time until the first close. */
function reconnectAfterMs(firstCloseMs: number): number {
  return Math.floor(firstCloseMs * (0.05 + Math.random() * 0.45));
}

/** Resolves after this time, or when all clients have left. */
async function unlessGone(connections: readonly Connection[], ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  void Promise.all(connections.map((connection) => connection.gone())).then(() => resolve());
  await promise;
  clearTimeout(timer);
}

/**
 * After the release of its routes, the relay promises a connection no new deliveries. No register or heartbeat is under
 * way that would bring a route back, and none follows. Earlier promised deliveries come in before the close.
 */
async function closeAfterDeliveries(connection: Connection, options: DrainOptions): Promise<void> {
  const { registrar, channel, releaser } = options;
  connection.pause("draining");
  await registrar.settled(connection);
  releaser.release(connection.agents.routes());
  await releaser.flush();
  await channel.caughtUp();
  await closed(connection);
}

/**
 * Closes a connection. The pod disconnects a client that does not read its frames and answer in time, so that a stop
 * ends.
 */
async function closed(connection: Connection): Promise<void> {
  connection.close(CLOSE_CODES.goingAway);
  const late = setTimeout(() => connection.closeNow(CLOSE_CODES.goingAway), CONNECTION_LIMITS.outboxStalledAfterMs);
  await connection.gone();
  clearTimeout(late);
}
