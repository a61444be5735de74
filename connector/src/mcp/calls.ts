import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  CancelledNotificationSchema,
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type MessageExtraInfo,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { keepNewest } from "../keep-newest.ts";

/** What the SDK's servers speak over. */
export type Transport = Parameters<McpServer["connect"]>[0];
type SendOptions = Parameters<Transport["send"]>[1];

/** A transport of the SDK that keeps account of the client's calls. */
export class ClientTransport implements Transport {
  readonly calls: Calls;
  readonly #inner: Transport;
  onclose: () => void = () => {};
  onerror: (error: Error) => void = () => {};
  onmessage: NonNullable<Transport["onmessage"]> = () => {};

  constructor(inner: Transport, calls: Calls) {
    this.calls = calls;
    this.#inner = inner;
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  async start(): Promise<void> {
    const { onclose, onerror } = this.#inner;
    this.#inner.onclose = () => {
      onclose?.();
      this.calls.end();
      this.onclose();
    };
    this.#inner.onerror = (error) => {
      onerror?.(error);
      this.onerror(error);
    };
    this.#inner.onmessage = (message, extra) => this.#receive(message, extra);
    await this.#inner.start();
  }

  /** An answer that cannot be sent ends its call, too. */
  async send(message: JSONRPCMessage, options?: SendOptions): Promise<void> {
    try {
      await this.#inner.send(message, options);
    } finally {
      const isAnswer = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message);
      if (isAnswer && message.id !== undefined) this.calls.answered(message.id);
    }
  }

  async close(): Promise<void> {
    await this.#inner.close();
  }

  #receive(message: JSONRPCMessage, extra?: MessageExtraInfo): void {
    if (isJSONRPCRequest(message)) this.calls.open(message.id);
    const { data: cancellation } = CancelledNotificationSchema.safeParse(message);
    if (cancellation?.params.requestId !== undefined) this.calls.cancel(cancellation.params.requestId);
    this.onmessage(message, extra);
  }
}

/** Of so many answered calls a cancellation still counts: it crossed the answer, which its client then ignores. */
const MAX_CROSSED = 4;

/** The calls of one client. */
export class Calls {
  readonly #open = new Map<RequestId, Call>();
  /** Oldest first. */
  readonly #answered = new Map<RequestId, Call>();

  get areOpen(): boolean {
    return this.#open.size > 0;
  }

  isOpen(id: RequestId): boolean {
    return this.#open.has(id);
  }

  /** The call of that id, which is open from now on. */
  open(id: RequestId): Call {
    const call = this.#open.get(id) ?? new Call();
    this.#open.set(id, call);
    return call;
  }

  /** The open call of that id. One that was cancelled before it was looked for has ended. */
  of(id: RequestId): Call {
    const call = this.#open.get(id) ?? new Call();
    if (!this.isOpen(id)) call.cancel();
    return call;
  }

  answered(id: RequestId): void {
    const call = this.#open.get(id);
    if (call === undefined) return;
    this.#open.delete(id);
    this.#answered.delete(id);
    keepNewest(this.#answered, id, call, MAX_CROSSED);
    call.answered();
  }

  cancel(id: RequestId): void {
    const call = this.#open.get(id) ?? this.#answered.get(id);
    this.#open.delete(id);
    this.#answered.delete(id);
    call?.cancel();
  }

  /** The client is gone. */
  end(): void {
    for (const id of [...this.#open.keys()]) this.cancel(id);
  }
}

/** A request of a client, until the client has its answer, or wants none any more. */
export class Call {
  readonly #abandoned = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  #putBack: (() => void) | undefined;

  /** Aborted when nobody takes the answer: the client cancelled the call, or its connection ended. */
  get abandoned(): AbortSignal {
    return this.#abandoned.signal;
  }

  /** Resolves when the call was answered or cancelled. A connection that ends cancels nothing. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** The answer has what no other call gets. @param putBack runs, once, when the client does not get it either. */
  takes(putBack: () => void): void {
    this.#putBack = putBack;
    if (this.abandoned.aborted) this.abandon();
  }

  answered(): void {
    this.#over.resolve();
  }

  abandon(): void {
    this.#abandoned.abort();
    this.#putBack?.();
    this.#putBack = undefined;
  }

  cancel(): void {
    this.abandon();
    this.#over.resolve();
  }
}
