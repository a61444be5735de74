/** The SDK of Agent Relay, for Node 22 or later, Deno, Bun and browsers. */

export { Connector } from "./connector.ts";
export { type ErrorCode, type ErrorEntry, RelayError, type RelayErrorCode } from "./errors.ts";
export type * from "./types.ts";
