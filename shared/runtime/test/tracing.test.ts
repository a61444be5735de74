import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";

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
