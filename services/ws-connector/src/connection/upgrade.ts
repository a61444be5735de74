import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import { CONNECTION_LIMITS, ENVELOPE_LIMITS } from "relay-protocol/wire/limits.ts";
import { clientAddress } from "relay-runtime/http/client-address.ts";
import { rawProblem } from "relay-runtime/http/problem.ts";
import type { TakeUpgrade } from "relay-runtime/http/server.ts";
import { WebSocketServer } from "ws";
import type { WsConnectorSettings } from "../settings.ts";
import type { ConnectionRegistry } from "./registry.ts";

/**
 * Compression is off: it fragments memory, and a small frame could inflate to a large frame. A client that never
 * registered has less time to answer a close (`Connection.close`).
 */
const SERVER_OPTIONS = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: ENVELOPE_LIMITS.maxFrameBytes,
  closeTimeout: CONNECTION_LIMITS.closeAnswerMs,
  maxFragments: CONNECTION_LIMITS.maxFragments,
  // Each connection answers only the last ping of a chunk.
  autoPong: false,
};

/** The only version of the RFC. ws would also accept the version of a draft. Source: RFC 6455, section 4.4. */
const WEBSOCKET_VERSION = "13";

const HANDSHAKE_RULE = {
  detail: "The request is no websocket handshake of RFC 6455.",
  hint: "Send a GET with Upgrade, Connection, Sec-WebSocket-Version 13, and a Sec-WebSocket-Key of 16 bytes in base64.",
};

export interface UpgradeOptions {
  readonly settings: Pick<WsConnectorSettings, "alternateWsPath" | "allowedOrigins" | "trustedProxyHops">;
  readonly connections: ConnectionRegistry;
  readonly refused: (code: ErrorCode) => void;
}

/** Handles HTTP upgrades. The pod checks path, origin and limits before the handshake. */
export function createUpgrade({ settings, connections, refused }: UpgradeOptions): TakeUpgrade {
  const server = new WebSocketServer(SERVER_OPTIONS);
  const refuse = (socket: Duplex, error: ServiceError, fields = {}) => {
    refused(error.code);
    socket.end(rawProblem(error, fields), () => socket.destroy());
  };
  const refuseHandshake = (socket: Duplex) =>
    refuse(socket, new ServiceError("invalid_request", HANDSHAKE_RULE), { "Sec-WebSocket-Version": WEBSOCKET_VERSION });
  server.on("wsClientError", (_error, socket) => refuseHandshake(socket));
  return (req, socket, head) => {
    const address = clientAddress(req, settings.trustedProxyHops);
    const refusal = requestRefusal(req, settings) ?? connections.refusalOf(address);
    if (refusal !== null) refuse(socket, refusal);
    else if (req.headers["sec-websocket-version"] !== WEBSOCKET_VERSION) refuseHandshake(socket);
    else server.handleUpgrade(req, socket, head, (websocket) => connections.add(websocket, socket, address));
  };
}

/** @returns the error for a wrong path or origin, before any limit is checked; or null. */
function requestRefusal(req: IncomingMessage, settings: UpgradeOptions["settings"]): ServiceError | null {
  const path = (req.url ?? "").split("?", 1)[0];
  if (path !== WEBSOCKET_PATH && path !== settings.alternateWsPath) return new ServiceError("not_found");
  // A client without an Origin header is not a browser.
  const { origin } = req.headers;
  const isAllowed =
    origin === undefined || settings.allowedOrigins.some((allowed) => allowed === "any" || allowed === origin);
  return isAllowed ? null : new ServiceError("origin_not_allowed");
}
