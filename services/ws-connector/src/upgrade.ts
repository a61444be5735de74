import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type ErrorCode, RelayError } from "@agent-relay/shared/contract/errors.ts";
import { ENVELOPE_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { WEBSOCKET_PATH } from "@agent-relay/shared/contract/surfaces.ts";
import { clientAddress } from "@agent-relay/shared/http/client-address.ts";
import { rawProblem } from "@agent-relay/shared/http/problem.ts";
import type { Logger } from "@agent-relay/shared/logging.ts";
import { type WebSocket, WebSocketServer } from "ws";

/**
 * Compression stays off: it fragments memory, and a small frame may hide a large one. A client that does not answer a
 * close, or never ends its own, is cut off: it would hold a connection for 30 s.
 */
const SERVER_OPTIONS = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: ENVELOPE_LIMITS.maxFrameBytes,
  closeTimeout: 1000,
};

/** The one version that there is; ws would take an older draft, too. Source: RFC 6455, section 4.4. */
const WEBSOCKET_VERSION = "13";

export interface UpgradeOptions {
  readonly alternatePath: string;
  /** `any`, or the origins that browsers may connect from. Clients without an Origin header are no browsers. */
  readonly allowedOrigins: readonly string[];
  readonly trustedProxyHops: number;
  /** Why the pod takes no other connection of this client address, or null. */
  readonly refusalOf: (address: string) => RelayError | null;
  readonly opened: (socket: WebSocket, stream: Duplex, address: string) => void;
  readonly refused: (code: ErrorCode) => void;
  readonly logger: Logger;
}

/** Takes HTTP upgrades: path, origin and limits are checked before the handshake. */
export function createUpgrade(options: UpgradeOptions): (req: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const server = new WebSocketServer(SERVER_OPTIONS);
  const refuse = (socket: Duplex, error: RelayError, fields = {}) => {
    options.refused(error.code);
    socket.on("error", () => {});
    socket.end(rawProblem(error, fields), () => socket.destroy());
  };
  const refuseHandshake = (socket: Duplex) =>
    refuse(socket, new RelayError("invalid_request"), { "Sec-WebSocket-Version": WEBSOCKET_VERSION });
  server.on("wsClientError", (_error, socket) => refuseHandshake(socket));
  return (req, socket, head) => {
    const address = clientAddress(req, options.trustedProxyHops);
    const refusal = faultOf(req, options) ?? options.refusalOf(address);
    if (refusal !== null) refuse(socket, refusal);
    else if (req.headers["sec-websocket-version"] !== WEBSOCKET_VERSION) refuseHandshake(socket);
    else server.handleUpgrade(req, socket, head, (websocket) => options.opened(websocket, socket, address));
  };
}

function faultOf(req: IncomingMessage, options: UpgradeOptions): RelayError | null {
  const path = (req.url ?? "").split("?", 1)[0];
  if (path !== WEBSOCKET_PATH && path !== options.alternatePath) return new RelayError("not_found");
  const { origin } = req.headers;
  const isAllowed = origin === undefined || options.allowedOrigins.some((one) => one === "any" || one === origin);
  return isAllowed ? null : new RelayError("origin_not_allowed");
}
