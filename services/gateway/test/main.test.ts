import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "@jest/globals";
import { COMPILE_CACHE } from "../../../test/support/pod-process.ts";
import { until } from "../../../test/support/until.ts";
import { useGatewayKit } from "./kit.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const kit = useGatewayKit();
const children: ChildProcess[] = [];

afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

function start(env: Record<string, string>) {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...COMPILE_CACHE, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { text: "" };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output.text += chunk));
  children.push(child);
  return { child, output, ended: once(child, "exit") as Promise<[number]> };
}

test("the gateway alone serves on its port, and at SIGTERM writes what it has counted", async () => {
  const { child, output, ended } = start({ ...kit.environment(), PORT: "0" });
  let port = "";
  const listens = () => {
    port = /"port":(\d+)/.exec(output.text)?.[1] ?? "";
    return port !== "";
  };
  await until("it listens", listens);
  const answers = await Promise.all(Array.from({ length: 10 }, () => fetch(`http://127.0.0.1:${port}/api/self-test`)));
  child.kill("SIGTERM");
  await Promise.all(answers.map((answer) => answer.text()));
  expect((await ended)[0]).toBe(0);
  expect((await kit.snapshot()).traffic.get("surface_views")).toBe(10);
});

test("invalid settings are all named at once, without their values, and the exit code is 78", async () => {
  const { output, ended } = start({ REDIS_URL: "redis//:secret", RELAY_PARTITIONS: "none" });
  expect((await ended)[0]).toBe(78);
  for (const name of ["REDIS_URL", "RELAY_PARTITIONS", "RELAY_KEYS_FILE"]) expect(output.text).toContain(name);
  expect(output.text).not.toContain("secret");
});

test.each([
  ["is invalid", MAIN],
  ["does not exist", `${MAIN}.json`],
])("a keys file that %s is an invalid setting like others", async (_, file) => {
  const { output, ended } = start({ ...kit.environment(), RELAY_KEYS_FILE: file });
  expect((await ended)[0]).toBe(78);
  expect(output.text).toContain("RELAY_KEYS_FILE");
  expect(output.text).not.toContain('"stack"');
});
