import type { Service } from "../lifecycle.ts";
import type { Logger } from "../logging.ts";
import type { SpanOptions, Tracer, TraceSpan } from "./span.ts";

/** Settings of tracing. Source: README.md#settings. */
interface TracingSettings {
  readonly otelExporterOtlpEndpoint: string | undefined;
  readonly otelTracesSamplerArg: number;
  readonly otelSdkDisabled: boolean;
}

/** Traces of one service: off, and OpenTelemetry not even loaded, without an endpoint. Source: docs/operations.md#traces. */
export class Tracing implements Service {
  readonly #settings: TracingSettings;
  readonly #service: string;
  readonly #logger: Logger;
  #tracer: Tracer | undefined;
  #isStopped = false;

  constructor(options: { readonly settings: TracingSettings; readonly service: string; readonly logger: Logger }) {
    this.#settings = options.settings;
    this.#service = options.service;
    this.#logger = options.logger;
  }

  /** True from start to stop where there is an endpoint. */
  get isOn(): boolean {
    return this.#tracer !== undefined;
  }

  async start(): Promise<void> {
    const { otelExporterOtlpEndpoint: endpoint, otelTracesSamplerArg: share, otelSdkDisabled } = this.#settings;
    if (endpoint === undefined || otelSdkDisabled) return;
    const { openTelemetry } = await import("./open-telemetry.ts");
    if (this.#isStopped) return;
    this.#tracer = openTelemetry({ endpoint, share, service: this.#service, logger: this.#logger });
  }

  /** Sends what has ended, or gives it up after two seconds. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const tracer = this.#tracer;
    this.#tracer = undefined;
    await tracer?.stop();
  }

  /** Undefined where nothing is traced. */
  begin(name: string, options: SpanOptions): TraceSpan | undefined {
    return this.#tracer?.begin(name, options);
  }
}
