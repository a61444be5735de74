/** How many connections a server holds, and for how long. Source: docs/protocol.md#limits. */
export interface ConnectionBounds {
  /** Plain HTTP connections: those that are not websockets, or not yet. 0 = no limit. */
  readonly plain: number;
  /** Those of one client address; 0 = no limit. */
  readonly plainPerAddress: number;
  /** Websockets, which their owner refuses beyond it. */
  readonly websockets: number;
  /** Ms without a request after which a connection is closed. */
  readonly idleMs: number;
}

/** What the bounds are made of. */
export interface ConnectionSettings {
  readonly httpConnections: number;
  readonly connectionsPerAddress: number;
  readonly trustedProxyHops: number;
  /** Only of a service that takes websockets. */
  readonly maxConnections?: number;
}

/** Longer than the 60 s of proxies, so that the relay never closes a connection on which one sends a request. */
const IDLE_BEHIND_PROXY_MS = 65_000;
const IDLE_MS = 10_000;

/** Of a server that few ask, such as that of the metrics. */
export const FEW_CONNECTIONS: ConnectionBounds = {
  plain: 32,
  plainPerAddress: 0,
  websockets: 0,
  idleMs: IDLE_BEHIND_PROXY_MS,
};

/** Behind a proxy every connection has the proxy's address: the bound by address is the proxy's there. */
export function connectionBounds(settings: ConnectionSettings): ConnectionBounds {
  const { httpConnections, connectionsPerAddress, trustedProxyHops, maxConnections = 0 } = settings;
  const isDirect = trustedProxyHops === 0;
  return {
    plain: httpConnections,
    plainPerAddress: isDirect ? connectionsPerAddress : 0,
    websockets: maxConnections,
    idleMs: isDirect ? IDLE_MS : IDLE_BEHIND_PROXY_MS,
  };
}
