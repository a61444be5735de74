import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { codeBlock } from "../support/documents.ts";
import { until } from "../support/until.ts";
import { useServedConnectors } from "./served-connectors.ts";

const { stage, machine, made, pod, usageLine, keyFileIn } = useServedConnectors();

describe("The line that llms.txt prints, in an empty folder, with no registry in reach,", () => {
  let cwd: string;
  let relay: string;
  beforeAll(async () => {
    cwd = await machine.folder("empty");
    const text = await (await fetch(`${pod.url}/llms.txt`)).text();
    relay = /^(npx \S+ \S+ relay) keygen/m.exec(codeBlock(text, "sh connector"))?.[1] as string;
  });

  test("names this relay's own package", () => {
    expect(relay).toBe(`npx --yes --package=${pod.url}/packages/agent-relay-connector-${made.version}.tgz relay`);
  });

  test("runs relay check and relay keygen", async () => {
    const key = await keyFileIn(cwd, "alice");
    const check = await machine.shell(`${relay} check --url ${pod.url} --key ${key}`, cwd);
    expect(check).toMatchObject({ code: 0, stdout: expect.stringContaining("agent://alice") });
    const keygen = await machine.shell(`${relay} keygen --agent agent://carol --out carol.json`, cwd);
    expect(JSON.parse(keygen.stdout)).toMatchObject({ agents: ["agent://carol"] });
  });

  test("runs again with the same registry named on the command line, and tells its version", async () => {
    const { code, stdout } = await machine.shell(
      `${relay.replace("--yes", "--yes --registry=http://127.0.0.1:9")} --version`,
      cwd,
    );
    expect([code, stdout]).toEqual([0, `${made.version}\n`]);
  });

  test("ends with the npx that it was run by, and its agent goes offline at once", async () => {
    const key = await keyFileIn(cwd, "bob");
    const listen = `${relay} listen --url ${pod.url} --key ${key} > deliveries.jsonl 2> log.txt & npx=$!`;
    const untilOnline = "until grep -q 'is online' log.txt; do sleep 0.1; done";
    const { stdout } = await machine.shell(`${listen}\n${untilOnline}\nkill $npx\nwait $npx || echo $?`, cwd);
    try {
      expect(stdout).toBe("143\n");
      await until("bob is offline", async () => {
        const answer = await fetch(`${pod.url}/api/onboarding/check-online?agent_id=agent://bob`);
        return ((await answer.json()) as { status: string }).status === "stale";
      });
    } finally {
      // Whoever is superseded ends: where this fails, the command is not left behind.
      await stage.online("bob", pod.url);
    }
  });

  test("is what /connectors prints, too", async () => {
    expect(await usageLine("npx")).toBe(`${relay} --help`);
  });
});

test("The module is downloaded and imported in Node as /connectors prints it, in an empty folder", async () => {
  const cwd = await machine.folder("downloaded");
  await machine.shell(await usageLine("curl"), cwd);
  const program = `${await usageLine('import { Connector } from "./')}\nconsole.log(typeof Connector);`;
  await writeFile(join(cwd, "main.mjs"), program);
  expect(await machine.shell("node main.mjs", cwd)).toEqual({ code: 0, stdout: "function\n", stderr: "" });
});
