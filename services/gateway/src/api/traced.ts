import { problemOf, refusalOf } from "relay-runtime/http/problem.ts";
import type { SurfaceContext } from "relay-runtime/http/router.ts";
import type { TraceSpan } from "relay-runtime/tracing/span.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";

/**
 * Does the work of a request that was authenticated, is within its rate and has a valid body in a span, from when it came in; in the trace that its `traceparent`
 * names. Who has no API key begins none: a collector is not for strangers to fill.
 * @param options.startedAt monotonic ms.
 */
export async function traced<Result>(
  ctx: SurfaceContext,
  { tracing, startedAt }: { readonly tracing: Tracing; readonly startedAt: number },
  work: (span: TraceSpan | undefined) => Promise<Result>,
): Promise<Result> {
  if (!tracing.isOn) return await work(undefined);
  const { method, path } = ctx.state.surface;
  const attributes = { "http.request.method": method, "http.route": path };
  const traceparent = ctx.get("traceparent");
  const span = tracing.begin(`${method} ${path}`, { kind: "server", startedAt, traceparent, attributes });
  try {
    const result = await work(span);
    span?.end({ "http.response.status_code": ctx.status });
    return result;
  } catch (error) {
    const refusal = refusalOf(error);
    span?.end({ "http.response.status_code": problemOf(refusal).status, "error.type": refusal.code });
    throw error;
  }
}
