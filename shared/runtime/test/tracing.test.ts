import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, expect, jest, test } from "@jest/globals";
import type { SpanExporter } from "@opentelemetry/sdk-trace";
import { BoundedExporter, WallClock } from "../src/tracing/open-telemetry.ts";

/** What loads OpenTelemetry, in a process of its own: modules that are loaded stay. */

const TRACING = new URL("../src/tracing/tracing.ts", import.meta.url).href;

/** Prints the modules of OpenTelemetry that a start loads. */
const PROGRAM = `
import { registerHooks } from "node:module";
const loaded = [];
registerHooks({
  load(url, context, next) {
    if (url.includes("@opentelemetry")) loaded.push(url);
    return next(url, context);
  },
});
const { Tracing } = await import(${JSON.stringify(TRACING)});
const endpoint = process.argv[1] || undefined;
const tracing = new Tracing({
  settings: { otelExporterOtlpEndpoint: endpoint, otelTracesSamplerArg: 1, otelSdkDisabled: false },
  service: "test",
  logger: { info() {}, warn() {} },
});
await tracing.start();
const span = tracing.begin("send", { kind: "server" });
console.log(JSON.stringify({ loaded: loaded.length > 0, isOn: tracing.isOn, begins: span !== undefined }));
await tracing.stop();
`;

async function started(endpoint: string): Promise<unknown> {
  const args = ["--input-type=module", "--eval", PROGRAM, endpoint];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

test("without an endpoint nothing is traced, and nothing of OpenTelemetry is loaded", async () => {
  expect(await started("")).toEqual({ loaded: false, isOn: false, begins: false });
});

test("with one it is", async () => {
  expect(await started("http://127.0.0.1:9")).toEqual({ loaded: true, isOn: true, begins: true });
});

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

afterEach(() => {
  jest.restoreAllMocks();
});

test("times keep their order and their distances while nobody sets the clock", () => {
  const clock = new WallClock();
  const first = clock.at(performance.now());
  expect(clock.at(performance.now() + 1.25) - first).toBeGreaterThanOrEqual(1.25);
  expect(Math.abs(first - Date.now())).toBeLessThan(1000);
});

test("a clock that is set, or a machine that was suspended, is followed", () => {
  const clock = new WallClock();
  const now = Date.now();
  jest.spyOn(Date, "now").mockReturnValue(now + 3_600_000);
  expect(Math.abs(clock.at(performance.now()) - now - 3_600_000)).toBeLessThan(1000);
});
