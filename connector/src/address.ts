/** Where a relay is. */
export interface RelayAddress {
  readonly websocket: string;
  readonly signingManifest: string;
  /** Of its HTTP side, without a slash at its end. */
  readonly base: string;
  /** With a port that is not the default: what a register names, and a credential may. */
  readonly host: string;
}

const WEBSOCKET_PROTOCOLS: Readonly<Record<string, string>> = {
  "http:": "ws:",
  "https:": "wss:",
  "ws:": "ws:",
  "wss:": "wss:",
};

/**
 * From a base address (http, https) or a websocket's (ws, wss; path /ws when it has none). The base of a websocket that does not end
 * in /ws is the root of its host.
 * @param http the base, where it is elsewhere.
 * @throws TypeError for any other.
 */
export function relayAddress(given: string | URL, http?: string | URL): RelayAddress {
  const url = URL.canParse(String(given)) ? new URL(given) : undefined;
  const protocol = WEBSOCKET_PROTOCOLS[url?.protocol ?? ""];
  if (url === undefined || protocol === undefined) throw new TypeError("url must be http(s):// or ws(s)://");
  const isBase = url.protocol.startsWith("http");
  const path = url.pathname.replace(/\/+$/, "");
  const websocket = isBase ? `${path}/ws` : path || "/ws";
  const parent = websocket.endsWith("/ws") ? websocket.slice(0, -"/ws".length) : "";
  const base = http ? relayAddress(http).base : `${protocol.replace("ws", "http")}//${url.host}${parent}`;
  return {
    base,
    host: url.host,
    websocket: `${protocol}//${url.host}${websocket}`,
    signingManifest: `${base}/.well-known/signing-manifest.json`,
  };
}
