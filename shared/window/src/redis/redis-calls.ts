import { type Place, partRefusal, ServiceError } from "relay-protocol/contract/refusals.ts";
import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Service } from "relay-runtime/lifecycle.ts";
import type { Reply, ScriptName } from "./scripts.ts";
import type { RedisMemory, Replicas } from "./server-info.ts";

/** The refusal of a call while Redis does not answer. @param cause error of Redis or of the client. */
export function unavailable(cause?: unknown): ServiceError {
  const error = new ServiceError("unavailable", { retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
  return cause === undefined ? error : Object.assign(error, { cause });
}

/** The refusal of a call while its part of Redis is out of reach and other parts are not. */
export class OutOfReachError extends ServiceError {
  readonly place: Place;

  constructor(place: Place, cause?: unknown) {
    super("unavailable", { ...partRefusal(place), retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
    this.place = place;
    if (cause !== undefined) this.cause = cause;
  }
}

/** The part out of reach that failed a call. Undefined for another fault, or if all of Redis is out of reach. */
export function placeOutOfReach(failure: unknown): Place | undefined {
  return failure instanceof OutOfReachError ? failure.place : undefined;
}

/** The part out of reach that failed a call, as fields of an outcome. */
export function placeIn(failure: unknown): { readonly place?: Place } {
  const place = placeOutOfReach(failure);
  return place === undefined ? {} : { place };
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unavailable";
}

type Argument = string | number;

/** One connection to one server, for metrics and checks. */
export interface ServerLink {
  /** Name of the connection in Redis and in the log. */
  readonly name: string;
  /** True while commands can be sent. */
  readonly up: boolean;
  /** Why the link is down. Null while it is up. */
  readonly downKind: RedisDownKind | null;
  /** How full the server is. */
  readonly memory: RedisMemory;
  /** Replicas of a cluster's primary. Undefined for a single Redis, and while unknown. */
  readonly replicas: Replicas | undefined;
  /**
   * Lower bound in ms of the distance between the server's clock and this process's. Positive if the server is ahead.
   */
  readonly clockOffsetMs: number;
  /** Makes another link to the same server, which is not watched. @param purpose suffix of its name. */
  beside(purpose: string): SubscribingLink;
  /** Sends a command about the server, or about a key that it has. @throws ServiceError `unavailable`. */
  command(name: string, ...args: readonly Argument[]): Promise<Reply>;
  /** Sends a command only to find out whether the user may send it. @throws ServiceError `unavailable`. */
  probe(name: string, ...args: readonly Argument[]): Promise<void>;
}

/** A connection to one server that receives messages of channels. */
export interface SubscribingLink extends ServerLink, Service {
  /**
   * Subscribes to a sharded channel, now and on each new connection.
   * @throws ServiceError `unavailable` if the present connection does not take it.
   */
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>;
  /**
   * Resolves when all earlier messages have arrived. No message arrives afterwards.
   * @throws ServiceError `unavailable`.
   */
  unsubscribe(channel: string): Promise<void>;
  /** Runs on each new connection, after its channels are subscribed. */
  onConnection(listener: (link: ServerLink) => Promise<void>): void;
  /** Runs each time the link goes down. */
  onDown(listener: () => void): void;
  /** Gives the connection up and makes another one. @param cause for the log, /ready and the metrics. */
  reconnect(cause: unknown): void;
}

/** A replica took the place of a primary that was out of reach or cut off. It may lack the primary's last answers. */
export interface Promotion {
  readonly hasSlot: (slot: number) => boolean;
  /**
   * Monotonic ms: until then the former primary was in reach, was not cut off and its replicas followed it, as far as
   * known. Minus infinity if it never answered this process, or was never known to be followed.
   */
  readonly lackingSince: number;
}

/**
 * The window's calls to Redis, a single one or a cluster. All keys of a call are in one slot. The first key decides the
 * server. A call is answered within a second, and never carried out twice.
 */
export interface RedisCalls extends Service {
  /** Name of the link in the service. */
  readonly name: string;
  /** True while commands can be sent. On a cluster, one primary in reach is enough. */
  readonly up: boolean;
  /** Why no command can be sent. Null while `up`. */
  readonly downKind: RedisDownKind | null;
  /** One link to each called server. */
  readonly links: readonly ServerLink[];

  /**
   * Runs a script in one round trip.
   * @throws ServiceError `unavailable`: Redis did not answer in time. Unless `isUndone`, the outcome is unknown.
   */
  run(script: ScriptName, keys: readonly string[], args?: readonly Argument[]): Promise<Reply>;

  /**
   * Runs a script that takes effect only until its deadline. The deadline is the first argument, which this method
   * adds. So the script never takes effect after its caller was told `unavailable`. Source: docs/redis.md#deadlines.
   * @throws ServiceError `unavailable`.
   */
  runByDeadline(script: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<Reply[]>;

  /** Sends any other command. @throws ServiceError `unavailable`. */
  command(name: string, key: string, ...args: readonly Argument[]): Promise<Reply>;

  /** Unix ms at the server of a key, or earlier. @param monotonicMs of this process. */
  unixTimeOf(key: string, monotonicMs: number): number;

  /** Memory of the server of a key. */
  memoryOf(key: string): RedisMemory;

  /** Link to the server of a key. Undefined while no server is known to have it. */
  serverOf(key: string): ServerLink | undefined;

  /** Runs when another server may have some of the keys. */
  onMoved(listener: () => void): void;

  /** Runs when a cluster replaced a primary without being asked. */
  onPromotion(listener: (promotion: Promotion) => void): void;

  /**
   * Gives each connection up, and makes another one after a pause.
   * @param cause for the log, /ready and the metrics.
   */
  reconnect(cause: unknown): void;

  /** Runs on each new connection to a server, before its link is up. A rejection gives that connection up. */
  onConnection(listener: (link: ServerLink) => Promise<void>): void;

  /**
   * Runs when calls can be sent for the first time or again: Redis may have lost data. With a single Redis, it runs on
   * each new connection before the link is up, and a rejection gives the connection up. With a cluster, it runs after
   * each link that came up and after each promotion. After a rejection it runs again after a pause, since a call to
   * another primary may have failed.
   */
  onUsable(listener: () => Promise<void>): void;

  /** Runs for each sent call with its link, its duration in ms, and whether it failed. */
  onCall(listener: (link: string, tookMs: number, failed: boolean) => void): void;
}
