import { ExportResultCode } from "@opentelemetry/core";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";

type Done = Parameters<SpanExporter["export"]>[1];

/**
 * An exporter of which each call ends in time. OpenTelemetry's waits for as long as a byte comes now and then, and for ever where a
 * collector answers with another protocol; thirty such calls, and it takes no more. So one that was late is left, and another takes its place.
 */
export class BoundedExporter implements SpanExporter {
  readonly #make: () => SpanExporter;
  readonly #withinMs: number;
  #exporter: SpanExporter;

  constructor(make: () => SpanExporter, withinMs: number) {
    this.#make = make;
    this.#withinMs = withinMs;
    this.#exporter = make();
  }

  export(spans: ReadableSpan[], done: Done): void {
    const late = setTimeout(() => {
      this.#exporter = this.#make();
      end({ code: ExportResultCode.FAILED, error: new Error(`no answer within ${this.#withinMs} ms`) });
    }, this.#withinMs);
    late.unref();
    let hasEnded = false;
    const end: Done = (result) => {
      clearTimeout(late);
      if (!hasEnded) done(result);
      hasEnded = true;
    };
    this.#exporter.export(spans, end);
  }

  async forceFlush(): Promise<void> {
    await this.#exporter.forceFlush?.();
  }

  async shutdown(): Promise<void> {
    await this.#exporter.shutdown();
  }
}
