import { type Place, partRefusal, ServiceError } from "relay-protocol/contract/refusals.ts";
import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Service } from "relay-runtime/lifecycle.ts";
import type { Reply, ScriptName } from "./scripts.ts";
import type { RedisMemory, Replicas } from "./server.ts";

/** The refusal for whatever needs Redis while it does not answer. @param cause what Redis or the client said. */
export function unavailable(cause?: unknown): ServiceError {
  const error = new ServiceError("unavailable", { retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
  return cause === undefined ? error : Object.assign(error, { cause });
}

/** The same of a part of Redis that does not answer, while others do. */
export class OutOfReachError extends ServiceError {
  readonly place: Place;

  constructor(place: Place, cause?: unknown) {
    super("unavailable", { ...partRefusal(place), retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
    this.place = place;
    if (cause !== undefined) this.cause = cause;
  }
}

/** Which part a failed call found out of reach; undefined where that is all of Redis, or another fault. */
export function placeOutOfReach(failure: unknown): Place | undefined {
  return failure instanceof OutOfReachError ? failure.place : undefined;
}

/** What an outcome says of the part that a failed call found out of reach. */
export function placeIn(failure: unknown): { readonly place?: Place } {
  const place = placeOutOfReach(failure);
  return place === undefined ? {} : { place };
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unavailable";
}

type Argument = string | number;

/** One connection to one server: what metrics and checks ask of it. */
export interface ServerLink {
  /** What Redis and the log call this connection. */
  readonly name: string;
  /** True while commands can be sent. */
  readonly up: boolean;
  /** Why it is down; null while it is up. */
  readonly downKind: RedisDownKind | null;
  /** How full the server is. */
  readonly memory: RedisMemory;
  /** Of a primary of a cluster; undefined of one Redis, and while it is not known. */
  readonly replicas: Replicas | undefined;
  /** How far the server's clock is from that of this process, at least, ms; above zero where the server is ahead. */
  readonly clockOffsetMs: number;
  /** Another link to the same server, which nobody watches. @param purpose ends its name. */
  beside(purpose: string): SubscribingLink;
  /** Sends a command that is about the server, or a key that it has. @throws ServiceError `unavailable`. */
  command(name: string, ...args: readonly Argument[]): Promise<Reply>;
  /** Whether its user may send a command, on whose outcome nothing depends. @throws ServiceError `unavailable`. */
  probe(name: string, ...args: readonly Argument[]): Promise<void>;
}

/** A connection to one server on which channels are heard. */
export interface SubscribingLink extends ServerLink, Service {
  /** Hears a sharded channel, on each new connection too. @throws ServiceError `unavailable`: not on the present one. */
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>;
  /** Resolves when what was published before has come in; nothing comes in afterwards. @throws ServiceError `unavailable`. */
  unsubscribe(channel: string): Promise<void>;
  /** Runs on each new connection, once it is subscribed. */
  onConnection(listener: (link: ServerLink) => Promise<void>): void;
  /** Runs each time a connection is lost or given up. */
  onDown(listener: () => void): void;
  /** Gives the connection up and makes another. @param cause told in the log, in /ready and in the metrics. */
  reconnect(cause: unknown): void;
}

/** A replica took the place of its primary, which cannot be reached or is cut off: it may lack what that one had answered last. */
export interface Promotion {
  readonly hasSlot: (slot: number) => boolean;
  /**
   * When the former primary was last known to answer, to be heard by the others and to be followed by its replicas, monotonic ms; minus
   * infinity when it never answered this process, or was never known to be followed.
   */
  readonly lackingSince: number;
}

/**
 * What the window asks of Redis, be it one or a cluster. The keys of a call lie in one slot, and the first of them says which server
 * is called. A call is answered within a second, and never carried out twice.
 */
export interface RedisCalls extends Service {
  /** The service's name for it. */
  readonly name: string;
  /** True while commands can be sent, on a cluster to one of its primaries at least. */
  readonly up: boolean;
  /** Why none can be sent; null while it is up. */
  readonly downKind: RedisDownKind | null;
  /** One to each server that is called. */
  readonly links: readonly ServerLink[];

  /**
   * Runs a script in one round trip.
   * @throws ServiceError `unavailable`: Redis did not answer in time; unless `isUndone`, the outcome is unknown.
   */
  run(script: ScriptName, keys: readonly string[], args?: readonly Argument[]): Promise<Reply>;

  /**
   * Runs a script that takes effect only until its deadline, the first argument, which this adds: never after its caller was
   * told `unavailable`. Source: docs/redis.md#deadlines.
   * @throws ServiceError `unavailable`.
   */
  runByDeadline(script: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<Reply[]>;

  /** Sends any other command. @throws ServiceError `unavailable`. */
  command(name: string, key: string, ...args: readonly Argument[]): Promise<Reply>;

  /** What time it was at the server of a key, or before: Unix ms. @param monotonicMs of this process. */
  unixTimeOf(key: string, monotonicMs: number): number;

  /** How full the server of a key is. */
  memoryOf(key: string): RedisMemory;

  /** The link to the server of a key; undefined while nobody is known to have it. */
  serverOf(key: string): ServerLink | undefined;

  /** Runs when another server may have some of the keys. */
  onMoved(listener: () => void): void;

  /** Runs when a primary was replaced, on a cluster, without being asked. */
  onPromotion(listener: (promotion: Promotion) => void): void;

  /** Gives up each connection and makes another, after a pause. @param cause told in the log, in /ready and in the metrics. */
  reconnect(cause: unknown): void;

  /** Runs on each new connection to a server, before its link is up. A rejection gives that connection up. */
  onConnection(listener: (link: ServerLink) => Promise<void>): void;

  /**
   * Runs when calls can be sent, or can be again: Redis may have forgotten what it was told. Of one Redis it runs on each new
   * connection before the link is up, and a rejection gives the connection up; of a cluster, after each link to a primary
   * came up and after each promotion, and again after a pause when it rejects, since what fails may be the call to another primary.
   */
  onUsable(listener: () => Promise<void>): void;

  /** Tells of each call that was sent: on which link, how long it took, and whether it failed. */
  onCall(listener: (link: string, tookMs: number, failed: boolean) => void): void;
}
