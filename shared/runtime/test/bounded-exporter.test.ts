import { expect, test } from "@jest/globals";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
import { BoundedExporter } from "../src/tracing/open-telemetry.ts";

type Result = Parameters<Parameters<SpanExporter["export"]>[1]>[0];
const SENT: Result = { code: 0 };

test("a call that has no answer fails in time, and the next is made by another exporter; what comes late counts for nothing", async () => {
  const answers: ((result: Result) => void)[] = [];
  let made = 0;
  const make = (): SpanExporter => {
    made += 1;
    return { export: (_, done) => void answers.push(done), shutdown: async () => {} };
  };
  const exporter = new BoundedExporter(make, 20);
  const results: Result[] = [];
  await new Promise<void>((resolve) => {
    exporter.export([], (result) => {
      results.push(result);
      resolve();
    });
  });
  answers[0]?.(SENT);
  expect(results).toEqual([{ code: 1, error: expect.any(Error) }]);
  exporter.export([], (result) => results.push(result));
  answers[1]?.(SENT);
  expect([made, results.slice(1)]).toEqual([2, [SENT]]);
});
