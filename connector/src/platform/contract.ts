import type { AttemptFailure } from "../network-errors.ts";

/**
 * What a connector needs of the network of its platform. `web.ts` has it for browsers and for the module that is imported by its
 * address, `node.ts` for all others.
 */

export interface WebSocketEvents {
  readonly text: (text: string) => void;
  /** Once. @param failure why it was not opened, where the platform tells it. */
  readonly closed: (code: number, failure?: AttemptFailure) => void;
}

/** One websocket, which opens by itself. */
export interface PlatformWebSocket {
  /** Dropped while it is not open. */
  send(text: string): void;
  /** `closed` follows. */
  close(): void;
  /** Ends it without the other end, where the platform can. */
  cut(): void;
  /** What it fails with if its time is over now, where more is known than that. */
  readonly silence?: AttemptFailure | undefined;
}

export interface HttpRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What a relay answers over HTTP. A redirect is an answer: followed, it would let a relay ask whatever this machine can reach. */
export interface HttpResponse {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, unknown>>;
  /** The connection ends when the reader leaves the loop. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The end of a websocket that told no code. Source: RFC 6455, section 7.4.1. */
export const NO_CODE = 1006;
