import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { CONFIGURATION_EXIT_CODE } from "relay-runtime/settings.ts";

/** What an image has in /app beside its service, what the services share, and packages from registries. */
const BESIDE = {
  gateway: ["packages/", "deploy/redis/"],
  "ws-connector": ["packages/index.json", "deploy/admin/"],
  "ops-reporting": [],
} as const;
const SERVICES = Object.keys(BESIDE) as (keyof typeof BESIDE)[];
const PROGRAMS = ["npm", "npx", "corepack", "yarn", "yarnpkg", "redis-server", "redis-cli"];

/** What a shell command prints in a container of an image, with its exit code in the last line. */
async function inImage(image: string, command: string): Promise<string[]> {
  const shell = ["--entrypoint", "sh", `agent-relay-test/${image}`, "-c", `${command} 2>&1; echo $?`];
  const { stdout } = await promisify(execFile)("docker", ["run", "--rm", "--network", "none", ...shell]);
  return stdout.trimEnd().split("\n");
}

test.each(SERVICES)("The image of %s has its service, what it shares with others, and no more", async (service) => {
  const files = await inImage(service, "cd /app && find * -type f ! -path 'node_modules/*'");
  expect(files.pop()).toBe("0");
  const expected = [
    ...["package.json", "deploy.env", "deploy/docker/healthy.mjs", `services/${service}/`],
    ...["shared/protocol/", "shared/runtime/", "shared/window/"],
    ...BESIDE[service],
  ];
  for (const part of expected) expect(files.filter((file) => file.startsWith(part))).not.toEqual([]);
  expect(files.filter((file) => !expected.some((part) => file.startsWith(part)))).toEqual([]);
});

test.each([...SERVICES, "setup"])("The image of %s can install nothing, and has no Redis", async (image) => {
  const found = await inImage(image, `find / -xdev \\( ${PROGRAMS.map((name) => `-name ${name}`).join(" -o ")} \\)`);
  // Folders that the user of the container cannot look into make find end with 1.
  expect(found.slice(0, -1).filter((line) => !line.startsWith("find: "))).toEqual([]);
});

test.each([
  ["gateway", "src/main.ts"],
  ["ws-connector", "src/main.ts"],
  ["ops-reporting", "src/main.ts"],
  ["gateway", "/app/deploy/redis/window-reset.ts"],
  ["gateway", "/app/deploy/redis/create-cluster.ts"],
])("The image of %s has all that %s imports: it starts, and asks for its settings", async (image, program) => {
  const printed = await inImage(image, `node ${program}`);
  expect([printed.pop(), printed.join("\n")]).toEqual([
    String(CONFIGURATION_EXIT_CODE),
    expect.stringContaining("REDIS_URL"),
  ]);
});

test("The image of ws-connector has the operator's command", async () => {
  expect((await inImage("ws-connector", "node /app/deploy/admin/run.ts --help")).pop()).toBe("0");
});
