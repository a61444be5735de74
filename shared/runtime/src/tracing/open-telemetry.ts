import {
  type Context,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { ExportResultCode, parseTraceParent, setGlobalErrorHandler } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  detectResources,
  envDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "../logging.ts";
import type { SpanAttributes, SpanOptions, Tracer, TraceSpan } from "./span.ts";

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, consumer: SpanKind.CONSUMER } as const;
/** Spans that wait to be sent; further ones are dropped. */
const MOST_WAITING = 2048;
const SENT_EVERY_MS = 1000;
/** To serialize a batch takes the event loop of those whose acks wait: 512, as is the default, made them wait for 50 ms. */
const MOST_TOGETHER = 128;
/** Longer than the exporter itself waits and tries again, by default 10 s. */
const EXPORT_MS = 15_000;
/** A collector that does not answer holds up no stop for longer. */
const STOP_MS = 2000;
/** That a collector fails, and that spans are dropped, is each told of once in this time. */
const TOLD_EVERY_MS = 60_000;
/** How many different messages are told apart, and how much of each is logged. */
const MOST_KINDS = 50;
const MOST_CHARACTERS = 200;
/**
 * Errors of the relay itself. As in the semantic conventions for HTTP, an error of the client does not fail the span.
 */
const FAULTS: ReadonlySet<string> = new Set(["internal_error", "unavailable"]);

/**
 * Spans sent over OTLP (HTTP, protobuf) in batches. Headers, timeout, compression and certificates of the exporter, and attributes of
 * the resource, come from the standard variables of the process. Nothing is asked of the machine: no host name, no process.
 * @param options.share of the traces that begin here which are sampled, 0 to 1; what another began is as that one decided.
 */
export function openTelemetry(options: {
  readonly endpoint: string;
  readonly share: number;
  readonly service: string;
  readonly logger: Logger;
}): Tracer {
  const { endpoint, share, service, logger } = options;
  reportFaults(logger, endpoint);
  logger.info({ endpoint, share }, "traces are sent");
  const named = resourceFromAttributes({ "service.namespace": "agent-relay", "service.name": service });
  const url = `${endpoint.replace(/\/$/, "")}/v1/traces`;
  const exporter = new BoundedExporter(() => new OTLPTraceExporter({ url }), EXPORT_MS);
  const provider = new TracerProvider({
    resource: named.merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: MOST_WAITING,
        maxExportBatchSize: MOST_TOGETHER,
        scheduledDelayMillis: SENT_EVERY_MS,
      }),
    ],
  });
  const tracer = provider.getTracer("agent-relay");
  const clock = new WallClock();

  function begin(name: string, parent: Context, { kind, startedAt, attributes = {} }: SpanOptions): Span {
    const startTime = clock.at(startedAt ?? performance.now());
    return tracer.startSpan(name, { kind: KINDS[kind], startTime, attributes: { ...attributes } }, parent);
  }

  function sampled(span: Span): TraceSpan {
    const { traceId, spanId } = span.spanContext();
    return {
      traceparent: `00-${traceId}-${spanId}-01`,
      child: (name, spanOptions) =>
        orNothing(() => sampled(begin(name, trace.setSpan(ROOT_CONTEXT, span), spanOptions))),
      end: (attributes) => orNothing(() => end(span, attributes, clock.at(performance.now()))),
    };
  }

  return {
    begin(name, spanOptions) {
      return orNothing(() => {
        const span = begin(name, contextOf(spanOptions.traceparent), spanOptions);
        return (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0 ? undefined : sampled(span);
      });
    },
    async stop() {
      const late = new Promise<void>((resolve) => setTimeout(resolve, STOP_MS).unref());
      await Promise.race([provider.shutdown().catch(() => {}), late]);
    },
  };
}

/** No fault of a trace is one of the envelope that it is about: its acceptance and its delivery go on. */
function orNothing<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    diag.error("a span was lost", error);
    return undefined;
  }
}

/** @param at Unix ms. */
function end(span: Span, attributes: SpanAttributes, at: number): void {
  span.setAttributes({ ...attributes });
  if (FAULTS.has(attributes["error.type"] ?? "")) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(at);
}

/** A text that is no traceparent begins a trace of its own. */
function contextOf(traceparent: string | undefined): Context {
  const parent = parseTraceParent(traceparent ?? "");
  return parent === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true });
}

/**
 * Set for all tracers of the process: OpenTelemetry has one handler. Its lower levels may hold addresses, so they go
 * nowhere.
 */
function reportFaults(logger: Logger, endpoint: string): void {
  const toldAt = new Map<string, number>();
  const report = (kind: string, text: string, fault: object = {}) => {
    const now = performance.now();
    if (now - (toldAt.get(kind) ?? Number.NEGATIVE_INFINITY) < TOLD_EVERY_MS) return;
    if (toldAt.size >= MOST_KINDS) toldAt.clear();
    toldAt.set(kind, now);
    logger.warn({ ...fault, endpoint }, text);
  };
  const nothing = () => {};
  const warn = (...said: unknown[]) => {
    const text = shortened(said.filter((word) => typeof word === "string").join(": "));
    report(text.replace(/\d+/g, ""), `traces: ${text}`);
  };
  diag.setLogger(
    { error: warn, warn, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  setGlobalErrorHandler((fault) => {
    const { message, code } = fault as { readonly message?: unknown; readonly code?: unknown };
    report("failed", "traces could not be sent", { problem: shortened(String(message)), code });
  });
}

/** A collector words part of it. */
function shortened(text: string): string {
  return text.slice(0, MOST_CHARACTERS);
}

type Done = Parameters<SpanExporter["export"]>[1];

/**
 * Ends each call of an exporter in time. OpenTelemetry's exporter waits as long as a byte comes now and then, and for
 * ever if a collector answers with another protocol. After thirty such calls it takes no more. So a late exporter is
 * replaced.
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

/** A larger difference is a step of the clock, or a suspended machine: the clock is asked again. */
const STEP_MS = 5;

/** Monotonic times as Unix ms, in their order while nobody sets the clock. */
export class WallClock {
  #offset = Date.now() - performance.now();

  /** @param monotonicMs of `performance.now()`. @returns Unix ms, with a fraction. */
  at(monotonicMs: number): number {
    const offset = Date.now() - performance.now();
    if (Math.abs(offset - this.#offset) > STEP_MS) this.#offset = offset;
    return this.#offset + monotonicMs;
  }
}
