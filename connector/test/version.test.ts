import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { CONNECTOR_PACKAGE, type PackageIndex } from "relay-protocol/contract/packages.ts";
import { serveWhole } from "../../test/support/relay.ts";
import { until } from "../../test/support/until.ts";
import { given } from "../../test/support/use-relay.ts";
import type { Warning } from "../src/index.ts";
import { outdatedWarning, VERSION } from "../src/version.ts";
import { CommandLine } from "./cli/kit.ts";
import { shared } from "./fixture.ts";
import { record } from "./kit.ts";

test("The version is that of package.json", async () => {
  const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
  expect(VERSION).toBe(version);
});

describe("A connector is warned of", () => {
  test.each([
    ["a higher number", "0.2.0-ba", "0.1.9-bb"],
    ["a higher number, compared as a number", "0.10.0", "0.9.0"],
    ["a higher major number before all others", "1.0.0-ba", "0.9.9-ba"],
    ["another build of its number", "0.1.0-ba", "0.1.0-bb"],
    ["a higher number than that of sources", "0.1.1-ba", "0.1.0"],
  ])("%s", (_, offered, own) => {
    expect(outdatedWarning(offered, own)).toMatchObject({ code: "outdated_connector" });
  });
});

describe("A connector is not warned of", () => {
  test.each([
    ["its own version", "0.1.0-ba", "0.1.0-ba"],
    ["a lower number", "0.1.0-ba", "0.2.0-bb"],
    ["a build of the same number, when it runs from sources", "0.1.0-ba", "0.1.0"],
    ["a relay that hands out none", undefined, "0.1.0-ba"],
    ["what is no version", "newest", "0.1.0-ba"],
    ["what is too long for one", `0.2.0-${"b".repeat(65)}`, "0.1.0-ba"],
  ])("%s", (_, offered, own) => {
    expect(outdatedWarning(offered, own)).toBeUndefined();
  });
});

describe("Of a relay that hands out a newer connector", () => {
  const [OFFERED, NEWER] = ["99.0.0-b1", "99.0.1-b1"];
  const line = shared(new CommandLine("alice", "bob"));
  const pod = given(async () => {
    return await serveWhole(line.stage.relay, { RELAY_PACKAGES_DIR: await folderOffering(line.folder, OFFERED) });
  });

  test("a connector warns once, and again only of another version", async () => {
    const warnings: Warning[] = [];
    const proxy = await line.stage.proxy(pod.url);
    const connector = line.stage.connector("alice", proxy.url);
    connector.on("warning", (warning) => warnings.push(warning));
    const { states } = record(connector);
    const online = (times: number) => () => states.filter((state) => state === "online").length === times;
    await connector.start();
    proxy.cut();
    await until("it is online again", online(2));
    expect(warnings.map(({ code }) => code)).toEqual(["outdated_connector"]);
    expect(warnings[0]?.message).toContain(OFFERED);

    proxy.toAgent = (frame) => (frame.frame === "hello" ? { ...frame, connector_version: NEWER } : frame);
    proxy.cut();
    await until("it is online once more", online(3));
    expect(warnings).toHaveLength(2);
    expect(warnings[1]?.message).toContain(NEWER);
  });

  test("relay listen and relay check report it on stderr, in one line", async () => {
    const at = (name: string) => ["--key", line.keyFile(name), "--url", pod.url];
    const check = await line.run(["check", ...at("bob")]);
    expect(check.code).toBe(0);
    expect(check.stdout).not.toContain(OFFERED);
    expect(linesWith(OFFERED, check.stderr)).toHaveLength(1);

    const listener = await line.listen("bob", "--url", pod.url);
    expect(listener.reports.filter(({ code }) => code === "outdated_connector")).toHaveLength(1);
    expect(listener.stdout).toBe("");
  });
});

function linesWith(text: string, printed: string): string[] {
  return printed.split("\n").filter((line) => line.includes(text));
}

/** A folder that offers a connector of that version. */
async function folderOffering(path: string, version: string): Promise<string> {
  const packages = join(path, "packages");
  const content = "a package";
  const file = `${CONNECTOR_PACKAGE}-${version}.tgz`;
  const integrity = `sha512-${createHash("sha512").update(content).digest("base64")}`;
  await mkdir(packages);
  const index: PackageIndex = {
    sources: "",
    packages: [
      {
        name: CONNECTOR_PACKAGE,
        version,
        file,
        media: "application/gzip",
        bytes: content.length,
        integrity,
        purpose: "",
        needs: "",
        usage: [],
        manual: "",
      },
    ],
  };
  await writeFile(join(packages, file), content);
  await writeFile(join(packages, "index.json"), JSON.stringify(index));
  return packages;
}
