import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { rowsBetween } from "../support/documents.ts";
import { closureOf, type Lock } from "../support/sources.ts";

const SERVICES = ["gateway", "ws-connector", "ops-reporting"];
const SHARED = ["shared/protocol", "shared/runtime", "shared/window"];

const textOf = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), "utf8");
const plain = (cell = "") => cell.replaceAll("`", "");
const security = await textOf("docs/security.md");

/** What a workspace asks for at run time, the repository's own packages left out. */
async function askedBy(workspace: string): Promise<string[]> {
  const { dependencies } = JSON.parse(await textOf(`${workspace}/package.json`)) as {
    dependencies: Record<string, string>;
  };
  return Object.entries(dependencies).flatMap(([name, version]) => (version.startsWith("file:") ? [] : [name]));
}

describe("docs/security.md", () => {
  test("names for each privacy claim a test that exists", async () => {
    const rows = rowsBetween(security, "privacy");
    expect(rows.length).toBeGreaterThan(15);
    for (const [claim, file, sentence] of rows) {
      const isThere = (await textOf(plain(file))).includes(`"${sentence}"`);
      expect({ claim, isThere }).toEqual({ claim, isThere: true });
    }
  });

  /** What the shared packages ask for, and so each service. */
  async function askedByAll(): Promise<string[]> {
    return [...new Set((await Promise.all(SHARED.map(askedBy))).flat())];
  }

  test("justifies every runtime dependency of the services, and no other", async () => {
    const ofAll = await askedByAll();
    const expected = ofAll.map((name) => [name, "each"]);
    for (const service of SERVICES) {
      const own = (await askedBy(`services/${service}`)).filter((name) => !ofAll.includes(name));
      expected.push(...own.map((name) => [name, service]));
    }
    const rows = rowsBetween(security, "dependencies");
    expect(rows.map(([name, of]) => [plain(name), plain(of)]).sort()).toEqual(expected.sort());
    for (const [, , reason = ""] of rows) expect(reason.length).toBeGreaterThan(3);
  });

  test("justifies every package that is built into the connector, and no other", async () => {
    const { dependencies } = JSON.parse(await textOf("connector/package.json"));
    const rows = rowsBetween(security, "connector packages");
    expect(rows.map(([name]) => plain(name))).toEqual(Object.keys(dependencies));
    for (const [, reason = ""] of rows) expect(reason.length).toBeGreaterThan(3);
  });

  test("counts what each service installs", async () => {
    const lock: Lock = JSON.parse(await textOf("package-lock.json"));
    const ofAll = await askedByAll();
    const expected = SERVICES.map(async (service) => {
      const asked = new Set([...ofAll, ...(await askedBy(`services/${service}`))]);
      return [service, String(asked.size), String(closureOf(lock, `services/${service}`).length)];
    });
    const rows = rowsBetween(security, "packages").map((row) => row.map(plain));
    expect(rows).toEqual(await Promise.all(expected));
  });
});
