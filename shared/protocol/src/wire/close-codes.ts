/**
 * Close codes of the relay's websockets, with advice for the client. `reason` is the text on the wire. The websocket
 * library sends 1002, 1007 and 1009 without a reason. If `reconnect` is false, the relay would close an unchanged
 * client again. Source: docs/protocol.md#close-codes; RFC 6455, section 7.4.
 */
export const CLOSE_CODES = {
  goingAway: { code: 1001, reason: "going away", reconnect: true, advice: "after the time that draining names" },
  protocolError: { code: 1002, reason: "", reconnect: true, advice: "protocol error, maybe of a proxy" },
  binaryFrame: { code: 1003, reason: "text frames only", reconnect: false, advice: "send text frames" },
  badUtf8: { code: 1007, reason: "", reconnect: false, advice: "send UTF-8: a text was none" },
  policy: { code: 1008, reason: "policy", reconnect: false, advice: "fix what the error frames named" },
  frameTooLarge: { code: 1009, reason: "", reconnect: false, advice: "shorten the frame to max_frame_bytes" },
  slowConsumer: { code: 1013, reason: "slow consumer", reconnect: true, advice: "read faster" },
  gaveWay: { code: 1013, reason: "too many unregistered connections", reconnect: true, advice: "register at once" },
  keyRevoked: { code: 4403, reason: "key revoked or expired", reconnect: false, advice: "use another key" },
  superseded: { code: 4409, reason: "superseded", reconnect: false, advice: "another connection has the agent" },
} as const;

/** A close code that the relay sends. */
export type CloseCode = Pick<(typeof CLOSE_CODES)[keyof typeof CLOSE_CODES], "code" | "reason">;

/** Meaning of `reconnect: false`. */
export const NO_RECONNECT = "No: not before your program, or what is advised, is changed.";
