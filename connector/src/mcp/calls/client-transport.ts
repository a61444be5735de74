import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  CancelledNotificationSchema,
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type MessageExtraInfo,
} from "@modelcontextprotocol/sdk/types.js";
import type { Calls } from "./calls.ts";

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
