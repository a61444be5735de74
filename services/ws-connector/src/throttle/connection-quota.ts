import { rateRefusal, ServiceError } from "relay-protocol/contract/refusals.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { AddressHash } from "relay-runtime/http/client-address.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { WsConnectorSettings } from "../settings.ts";

/** Connections of one client address. */
export interface AddressCounts {
  open: number;
  /** Open connections that have not sent a valid envelope yet. */
  unregistered: number;
  /** Opened in this minute. */
  opened: number;
}

/** A connection, as the quota sees it. */
export interface CountedConnection {
  readonly addressCounts: AddressCounts;
  close(code: typeof CLOSE_CODES.gaveWay): void;
}

export type QuotaSettings = Pick<
  WsConnectorSettings,
  "maxConnections" | "connectionsPerAddress" | "unregisteredConnections"
>;

/** The count that each limit of an address bounds. */
const COUNTED = { address_connections: "open", address_unregistered: "unregistered", address_opens: "opened" } as const;

/**
 * Limits the connections of the pod, in total and per client address. Unregistered connections, without a valid
 * envelope yet, have limits of their own. Above the pod's limit for unregistered connections, the pod closes the oldest
 * of them. Otherwise silent sockets would keep everybody out. Source: docs/protocol.md#limits.
 *
 * The pod keeps only a hash of each address. The key of the hash exists only in this process. The hash is deleted at
 * most two minutes after the last connection of the address.
 */
export class ConnectionQuota {
  readonly #maxOpen: number;
  readonly #maxUnregistered: number;
  readonly #maxOfAddress: Readonly<AddressCounts>;
  readonly #limitReached: (limit: LimitName) => void;
  readonly #addressHash = new AddressHash();
  /** By the hash of the address. */
  readonly #addresses = new Map<string, AddressCounts>();
  /** Oldest first. */
  readonly #unregistered = new Set<CountedConnection>();
  #open = 0;
  /** Monotonic ms. */
  #minuteEndsAt = 0;

  /** @param limitReached called whenever a limit refuses or closes a connection. */
  constructor(settings: QuotaSettings, limitReached: (limit: LimitName) => void) {
    const maxOfAddress = settings.connectionsPerAddress || Number.POSITIVE_INFINITY;
    this.#maxOpen = settings.maxConnections;
    this.#maxUnregistered = settings.unregisteredConnections || Number.POSITIVE_INFINITY;
    this.#maxOfAddress = {
      open: maxOfAddress,
      unregistered: Math.ceil(maxOfAddress * CONNECTION_LIMITS.unregisteredShare),
      opened: maxOfAddress * CONNECTION_LIMITS.opensPerMinuteFactor,
    };
    this.#limitReached = limitReached;
  }

  /**
   * @param now monotonic ms.
   * @returns the error for another connection of this address; null if the pod takes it.
   */
  refusalOf(address: string, now: number): ServiceError | null {
    this.forgetClosed(now);
    const limit = this.#limitMetBy(this.#addresses.get(this.#addressHash.of(address)));
    if (limit === null) return null;
    this.#limitReached(limit);
    const retryAfterMs = limit === "address_opens" ? this.#minuteEndsAt - now : CONNECTION_LIMITS.capacityRetryAfterMs;
    if (limit === "pod_connections") return new ServiceError("over_capacity", { retryAfterMs });
    return new ServiceError("rate_limited", rateRefusal(limit, this.#maxOfAddress[COUNTED[limit]], retryAfterMs));
  }

  /**
   * The counts of an address. Each of its connections holds the same object. Without a limit they still identify the
   * address for turns.
   */
  countsOf(address: string): AddressCounts {
    const id = this.#addressHash.of(address);
    const known = this.#addresses.get(id);
    if (known !== undefined) return known;
    // Also bounds the memory within a minute, if connections come and go from ever new addresses.
    if (this.#addresses.size >= 2 * this.#maxOpen) this.#dropClosed();
    const counts = { open: 0, unregistered: 0, opened: 0 };
    this.#addresses.set(id, counts);
    return counts;
  }

  opened(connection: CountedConnection): void {
    const { addressCounts } = connection;
    this.#open += 1;
    addressCounts.open += 1;
    addressCounts.opened += 1;
    addressCounts.unregistered += 1;
    this.#unregistered.add(connection);
    if (this.#unregistered.size > this.#maxUnregistered) this.#closeOldestUnregistered();
  }

  /** The connection sent its first valid envelope. */
  registered(connection: CountedConnection): void {
    this.#removeUnregistered(connection);
  }

  /** The connection begins to close. It counts as open until its socket is gone. */
  closing(connection: CountedConnection): void {
    this.#removeUnregistered(connection);
  }

  /** The socket of a closing connection is gone. */
  closed(connection: CountedConnection): void {
    this.#open -= 1;
    connection.addressCounts.open -= 1;
  }

  /** Once a minute, forgets the addresses without a connection. @param now monotonic ms. */
  forgetClosed(now: number): void {
    if (now < this.#minuteEndsAt) return;
    this.#minuteEndsAt = now + CONNECTION_LIMITS.opensWindowMs;
    this.#dropClosed();
    for (const counts of this.#addresses.values()) counts.opened = 0;
  }

  #limitMetBy(counts: AddressCounts | undefined): "pod_connections" | keyof typeof COUNTED | null {
    const max = this.#maxOfAddress;
    if (this.#open >= this.#maxOpen) return "pod_connections";
    if (counts === undefined) return null;
    if (counts.open >= max.open) return "address_connections";
    if (counts.unregistered >= max.unregistered) return "address_unregistered";
    return counts.opened >= max.opened ? "address_opens" : null;
  }

  #removeUnregistered(connection: CountedConnection): void {
    if (this.#unregistered.delete(connection)) connection.addressCounts.unregistered -= 1;
  }

  #closeOldestUnregistered(): void {
    const [oldest] = this.#unregistered;
    this.#limitReached("pod_unregistered");
    oldest?.close(CLOSE_CODES.gaveWay);
  }

  #dropClosed(): void {
    for (const [id, { open }] of this.#addresses) {
      if (open === 0) this.#addresses.delete(id);
    }
  }
}
