import { setTimeout as delay } from "node:timers/promises";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import type { RouteReleaser } from "relay-window/presence/routes.ts";
import type { Registrar } from "./agents/registrar.ts";
import type { Connection } from "./connection/connection.ts";
import { drainingNotice } from "./connection/frames.ts";

export interface PeriodicTask {
  readonly everyMs: number;
  readonly run: () => void;
}

/** Runs each task at its interval, from `start` to `stop`. */
export class PeriodicTasks {
  readonly #tasks: readonly PeriodicTask[];
  #timers: readonly NodeJS.Timeout[] = [];

  constructor(tasks: readonly PeriodicTask[]) {
    this.#tasks = tasks;
  }

  start(): void {
    this.#timers = this.#tasks.map(({ everyMs, run }) => setInterval(run, everyMs));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}

/** Between two closes while there is time, so that the other pods do not get all clients at once. */
const PACE_MS = 5;
/**
 * When the first connection closes, if the drain lasts so long. The notices name at most half of it: a connector adds up to
 * half of what is named, and registers elsewhere before its close.
 */
const FIRST_CLOSE_MS = 2000;

export interface DrainOptions {
  readonly registrar: Registrar;
  readonly channel: PodChannel;
  readonly releaser: RouteReleaser;
  /** The closes end within this time, or earlier when there are few. 0: they come at once. */
  readonly drainMs: number;
}

/**
 * Sends every client to another pod: first the notices, then, when the time that they name is over, the closes. Deliveries
 * go on until a connection's own close. Source: docs/operations.md#scale.
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

/** A random time: between a twentieth and half of what is left until the first close. */
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
 * From the release of its routes on nothing new is promised to a connection: no register or heartbeat is under way that
 * would bring a route back, and none follows. What was promised before comes in first.
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

/** Closes it. Who has not read what it was promised, and answered, after the time for that is disconnected: a stop ends. */
async function closed(connection: Connection): Promise<void> {
  connection.close(CLOSE_CODES.goingAway);
  const late = setTimeout(() => connection.closeNow(CLOSE_CODES.goingAway), CONNECTION_LIMITS.outboxStalledAfterMs);
  await connection.gone();
  clearTimeout(late);
}
