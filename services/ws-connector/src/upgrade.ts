import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type ErrorCode, RelayError } from "@agent-relay/shared/contract/errors.ts";
import { ENVELOPE_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { WEBSOCKET_PATH } from "@agent-relay/shared/contract/surfaces.ts";
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

/** What a refused client waits before it knocks again. */
const CAPACITY_RETRY_AFTER_MS = 5000;

export interface UpgradeOptions {
  readonly alternatePath: string;
  /** `any`, or the origins that browsers may connect from. Clients without an Origin header are no browsers. */
  readonly allowedOrigins: readonly string[];
  /** True when another connection fits, and the pod takes any. */
  readonly hasRoom: () => boolean;
  readonly opened: (socket: WebSocket, stream: Duplex) => void;
  readonly refused: (code: ErrorCode) => void;
  readonly logger: Logger;
}

/** Takes HTTP upgrades: path, origin and capacity are checked before the handshake. */
export function createUpgrade(options: UpgradeOptions): (req: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const server = new WebSocketServer(SERVER_OPTIONS);
  const refuse = (socket: Duplex, error: RelayError) => {
    options.refused(error.code);
    socket.on("error", () => {});
    socket.end(rawProblem(error), () => socket.destroy());
  };
  server.on("wsClientError", (_error, socket) => refuse(socket, new RelayError("invalid_request")));
  return (req, socket, head) => {
    const refusal = refusalOf(req, options);
    if (refusal !== null) refuse(socket, refusal);
    else server.handleUpgrade(req, socket, head, (websocket) => options.opened(websocket, socket));
  };
}

function refusalOf(req: IncomingMessage, options: UpgradeOptions): RelayError | null {
  const path = (req.url ?? "").split("?", 1)[0];
  if (path !== WEBSOCKET_PATH && path !== options.alternatePath) return new RelayError("not_found");
  const { origin } = req.headers;
  const isAllowed = origin === undefined || options.allowedOrigins.some((one) => one === "any" || one === origin);
  if (!isAllowed) return new RelayError("origin_not_allowed");
  if (!options.hasRoom()) return new RelayError("over_capacity", { retryAfterMs: CAPACITY_RETRY_AFTER_MS });
  return null;
}
