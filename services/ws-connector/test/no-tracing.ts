import { createLogger } from "runtime/logging.ts";
import { Tracing } from "runtime/tracing/tracing.ts";

/** Where nobody asked for traces. */
export const NO_TRACING = new Tracing({
  settings: { otelExporterOtlpEndpoint: undefined, otelTracesSamplerArg: 1, otelSdkDisabled: false },
  service: "test",
  logger: createLogger({ service: "test", level: "silent" }),
});
