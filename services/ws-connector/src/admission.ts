import { randomBytes } from "node:crypto";
import { CLOSE_CODES, RelayError } from "@agent-relay/shared/contract/errors.ts";
import { CONNECTION_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { networkOf } from "@agent-relay/shared/http/client-address.ts";
import type { LimitName } from "@agent-relay/shared/metrics/catalogue.ts";
import { anonymousId } from "@agent-relay/shared/window/visitors.ts";
import type { WsConnectorSettings } from "./settings.ts";

/** How many connections one client address has. */
export interface Caller {
  open: number;
  unregistered: number;
  /** Opened in this minute. */
  opened: number;
}

/** What of a connection has to do with its admission. */
export interface Guest {
  readonly caller: Caller;
  close(code: typeof CLOSE_CODES.gaveWay): void;
}

export type AdmissionLimits = Pick<
  WsConnectorSettings,
  "maxConnections" | "connectionsPerAddress" | "unregisteredConnections"
>;

/**
 * How many connections the pod takes, in all and of one client address, and how many that have not shown a valid
 * envelope yet. When there are too many of those, the oldest gives way: a client registers at once, while silent sockets
 * would otherwise keep everybody out for as long as they may stay silent.
 *
 * Of an address only a hash is kept, keyed by this process alone, while it has a connection and for two minutes at most.
 */
export class Admission {
  readonly #maxOpen: number;
  readonly #maxNewcomers: number;
  readonly #maxOfCaller: { readonly open: number; readonly unregistered: number; readonly opened: number };
  readonly #struck: (limit: LimitName) => void;
  readonly #salt = randomBytes(32).toString("base64url");
  readonly #callers = new Map<string, Caller>();
  /** Oldest first. */
  readonly #newcomers = new Set<Guest>();
  #open = 0;
  #minuteEndsAt = 0;

  /** @param struck told of each limit that strikes. */
  constructor(limits: AdmissionLimits, struck: (limit: LimitName) => void) {
    const ofAddress = limits.connectionsPerAddress || Number.POSITIVE_INFINITY;
    this.#maxOpen = limits.maxConnections;
    this.#maxNewcomers = limits.unregisteredConnections || Number.POSITIVE_INFINITY;
    this.#maxOfCaller = {
      open: ofAddress,
      unregistered: Math.ceil(ofAddress * CONNECTION_LIMITS.unregisteredShare),
      opened: ofAddress * CONNECTION_LIMITS.opensPerMinuteFactor,
    };
    this.#struck = struck;
  }

  /** Client addresses that are remembered. */
  get callerCount(): number {
    return this.#callers.size;
  }

  /**
   * Why another connection of this address is refused, or null.
   * @param now monotonic ms.
   */
  refusalOf(address: string, now: number): RelayError | null {
    this.forget(now);
    const limit = this.#limitMetBy(this.#callers.get(this.#idOf(address)));
    if (limit === null) return null;
    this.#struck(limit);
    const retryAfterMs = limit === "address_opens" ? this.#minuteEndsAt - now : CONNECTION_LIMITS.capacityRetryAfterMs;
    return new RelayError(limit === "pod_connections" ? "over_capacity" : "rate_limited", { retryAfterMs });
  }

  /** The counts of an address; a connection carries them with it. */
  callerOf(address: string): Caller {
    const id = this.#idOf(address);
    const known = this.#callers.get(id);
    if (known !== undefined) return known;
    // Whoever opens and closes from ever new addresses fills no memory within the minute.
    if (this.#callers.size >= 2 * this.#maxOpen) this.#dropClosed();
    const caller = { open: 0, unregistered: 0, opened: 0 };
    this.#callers.set(id, caller);
    return caller;
  }

  opened(guest: Guest): void {
    const { caller } = guest;
    this.#open += 1;
    caller.open += 1;
    caller.opened += 1;
    caller.unregistered += 1;
    this.#newcomers.add(guest);
    if (this.#newcomers.size > this.#maxNewcomers) this.#dismissOldest();
  }

  /** A connection showed a valid envelope, or is about to end; may be told more than once. */
  settled(guest: Guest): void {
    if (this.#newcomers.delete(guest)) guest.caller.unregistered -= 1;
  }

  closed(guest: Guest): void {
    this.settled(guest);
    this.#open -= 1;
    guest.caller.open -= 1;
  }

  /** Forgets, once a minute, the addresses without a connection. @param now monotonic ms. */
  forget(now: number): void {
    if (now < this.#minuteEndsAt) return;
    this.#minuteEndsAt = now + CONNECTION_LIMITS.opensWindowMs;
    this.#dropClosed();
    for (const caller of this.#callers.values()) caller.opened = 0;
  }

  #limitMetBy(caller: Caller | undefined): LimitName | null {
    const most = this.#maxOfCaller;
    if (this.#open >= this.#maxOpen) return "pod_connections";
    if (caller === undefined) return null;
    if (caller.open >= most.open) return "address_connections";
    if (caller.unregistered >= most.unregistered) return "address_unregistered";
    return caller.opened >= most.opened ? "address_opens" : null;
  }

  /** Without a limit all addresses are one. */
  #idOf(address: string): string {
    if (this.#maxOfCaller.open === Number.POSITIVE_INFINITY) return "";
    return anonymousId(this.#salt, "address", networkOf(address));
  }

  #dismissOldest(): void {
    const [oldest] = this.#newcomers;
    this.#struck("pod_unregistered");
    oldest?.close(CLOSE_CODES.gaveWay);
  }

  #dropClosed(): void {
    for (const [id, { open }] of this.#callers) {
      if (open === 0) this.#callers.delete(id);
    }
  }
}
