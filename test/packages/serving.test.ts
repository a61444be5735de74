import { createHash } from "node:crypto";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { readPackages } from "gateway/discovery/packages.ts";
import { readGatewaySettings } from "gateway/settings.ts";
import { Connectors } from "relay-protocol/contract/packages.ts";
import { SettingsError } from "relay-runtime/settings.ts";
import { answersTo } from "../hostile/support/raw-http.ts";
import { madePackages, packagesIn } from "../support/packages.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { given, useRelay } from "../support/use-relay.ts";

const BASE_URL = "https://relay.example";

const relay = useRelay();
let folder: string;
let listed: Connectors["packages"];

beforeAll(async () => {
  folder = await madePackages();
}, 60_000);
const gateway = given(() => relay.startGateway({ RELAY_PACKAGES_DIR: folder, RELAY_BASE_URL: BASE_URL }));
beforeAll(async () => {
  listed = Connectors.parse(await (await fetch(`${gateway.url}/connectors`)).json()).packages;
});

const named = (name: string) => listed.find((one) => one.name === name) as Connectors["packages"][number];

describe("GET /connectors", () => {
  test("lists the connector for npm and the module for browsers, by their versioned paths", () => {
    const [npm, module] = [named("agent-relay-connector"), named("connector")];
    expect(npm.path).toBe(`/packages/agent-relay-connector-${npm.version}.tgz`);
    expect(module.path).toBe(`/packages/connector-${module.version}.js`);
    expect(npm.version).toMatch(/^\d+\.\d+\.\d+-b[0-9a-f]{12}$/);
    for (const { url, path, purpose, needs } of listed) {
      expect(url).toBe(BASE_URL + path);
      expect(`${purpose}${needs}`).not.toBe("");
    }
  });

  test("tells size and SHA-512 of exactly the bytes that are served", async () => {
    expect(listed).toHaveLength(4);
    for (const { path, bytes, integrity } of listed) {
      const content = Buffer.from(await (await fetch(gateway.url + path)).arrayBuffer());
      expect(content.length).toBe(bytes);
      expect(`sha512-${createHash("sha512").update(content).digest("base64")}`).toBe(integrity);
    }
  });

  test("prints lines with the package's own address, and takes nothing of its own from a registry", () => {
    const lines = listed.flatMap(({ usage }) => usage.map(({ line }) => line));
    const { url } = named("agent-relay-connector");
    expect(lines).toContain(`npx --yes --package=${url} relay --help`);
    expect(lines).toContain(`npm install ${url}`);
    expect(lines).toContain(`npx --yes --package=${url} relay init weather --url ${BASE_URL}`);
    expect(lines).toContain(`npx --yes --package=node@24 --package=${url} relay --help`);
    expect(lines.join("\n")).not.toMatch(
      /\{url\}|\{relay\}|(?:--package=|install )(?!https:|node@24 |--save-dev typescript @types\/node$)/m,
    );
  });
});

test("Each language has a first program that needs the address of this relay and a key file, and every package a manual", () => {
  for (const [name, reads] of [
    ["agent-relay-connector", "readKeyFile("],
    ["agent_relay_connector", "key_file="],
  ] as const) {
    const { first_program } = named(name);
    expect(first_program).toContain(reads);
    expect(first_program).toContain(BASE_URL);
  }
  for (const { manual } of listed) expect(manual).not.toBe("");
});

test("The line of pip has it check the content", () => {
  const { url, integrity, usage } = named("agent_relay_connector");
  const digest = Buffer.from(integrity.replace("sha512-", ""), "base64").toString("hex");
  expect(usage.map(({ line }: { line: string }) => line)).toContain(`.venv/bin/pip install ${url}#sha512=${digest}`);
});

describe("A package", () => {
  test("may be kept for ever, and has the type of its content", async () => {
    const types = { "agent-relay-connector": "application/gzip", connector: "text/javascript; charset=utf-8" };
    for (const [name, type] of Object.entries(types)) {
      const { status, headers } = await fetch(gateway.url + named(name).path, { method: "HEAD" });
      expect(status).toBe(200);
      expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(headers.get("content-type")).toBe(type);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("access-control-allow-origin")).toBe("*");
    }
  });

  test("is at most 3 MB", () => {
    for (const { bytes } of listed) expect(bytes).toBeLessThanOrEqual(3_000_000);
  });

  test("answers HEAD with its length", async () => {
    const { path, bytes } = named("agent-relay-connector");
    const { status, headers } = await fetch(gateway.url + path, { method: "HEAD" });
    expect([status, headers.get("content-length")]).toEqual([200, String(bytes)]);
  });

  test("is served as it was at start, whatever becomes of the folder", async () => {
    await using copy = await temporaryFolder();
    await cp(folder, copy.path, { recursive: true });
    const other = await relay.startGateway({ RELAY_PACKAGES_DIR: copy.path });
    await rm(join(copy.path, "index.json"));
    await writeFile(join(copy.path, named("connector").path.split("/").at(-1) as string), "changed");
    const content = await (await fetch(other.url + named("connector").path)).arrayBuffer();
    expect(content.byteLength).toBe(named("connector").bytes);
  });
});

test("/connector.tgz is the newest connector for download: never from a cache, and with its version in its name", async () => {
  const answer = await fetch(`${gateway.url}/connector.tgz`);
  const { path, integrity } = named("agent-relay-connector");
  expect(answer.headers.get("cache-control")).toBe("no-cache");
  expect(answer.headers.get("content-disposition")).toBe(`attachment; filename="${path.split("/").at(-1)}"`);
  const content = Buffer.from(await answer.arrayBuffer());
  expect(`sha512-${createHash("sha512").update(content).digest("base64")}`).toBe(integrity);
});

test.each([
  "agent-relay-connector-0.0.1.tgz",
  "index.json",
  "packages.lock",
  "",
  "..",
  "../index.json",
  "%2e%2e%2findex.json",
  "..%2f..%2fpackage.json",
  "..%5cindex.json",
  "%2fetc%2fpasswd",
  "x%00.tgz",
  "%E0%A4%A",
  "constructor",
  "__proto__",
])("Nothing but the files of the index is served: /packages/%s is 404", async (file) => {
  const request = `GET /packages/${file} HTTP/1.1\r\nHost: relay.example\r\nConnection: close\r\n\r\n`;
  const [answer] = await answersTo(gateway.port, request);
  expect(answer?.status).toBe(404);
  expect(JSON.parse(answer?.text ?? "")).toMatchObject({ code: "not_found" });
  expect(answer?.head).toMatch(/cache-control: no-store/i);
});

describe("A relay without packages", () => {
  const bare = given(() => relay.startGateway());

  test("lists none, and says so", async () => {
    const answer = Connectors.parse(await (await fetch(`${bare.url}/connectors`)).json());
    expect(answer.packages).toEqual([]);
    expect(answer.note).toContain("RELAY_PACKAGES_DIR");
  });

  test("has none under any path", async () => {
    for (const path of ["/connector.tgz", ...listed.map((one) => one.path)]) {
      expect((await fetch(bare.url + path, { method: "HEAD" })).status).toBe(404);
    }
  });

  test("prints no line that would fetch one, and no package of a registry", async () => {
    const text = await (await fetch(`${bare.url}/llms.txt`)).text();
    expect(text).not.toMatch(/--package=|npm install/);
  });

  test("says nothing of a connector in hello", async () => {
    const socket = await relay.connect(await relay.startWsConnector());
    expect(socket.frames[0]).not.toHaveProperty("connector_version");
  });
});

test("hello tells the version of the connector that the relay hands out", async () => {
  const socket = await relay.connect(await relay.startWsConnector({ RELAY_PACKAGES_DIR: folder }));
  expect(socket.frames[0].connector_version).toBe(named("agent-relay-connector").version);
});

describe("A folder that is not as its index says keeps the gateway from starting:", () => {
  const settingsOf = (path: string) => readGatewaySettings({ ...relay.environment, RELAY_PACKAGES_DIR: path });
  const start = (path: string) => readPackages(settingsOf(path).packagesDir);

  test("no index, or none that can be read", async () => {
    await using copy = await temporaryFolder();
    expect(() => start(copy.path)).toThrow(SettingsError);
    await writeFile(join(copy.path, "index.json"), "{");
    expect(() => start(copy.path)).toThrow(SettingsError);
  });

  test("a file that is missing, or has other bytes", async () => {
    await using copy = await temporaryFolder();
    await cp(folder, copy.path, { recursive: true });
    expect(start(copy.path).size).toBe(4);
    const file = join(copy.path, named("connector").path.split("/").at(-1) as string);
    await writeFile(file, "other bytes");
    expect(() => start(copy.path)).toThrow(SettingsError);
    await rm(file);
    expect(() => start(copy.path)).toThrow(SettingsError);
  });

  test.each(["../outside.tgz", ".hidden", "a/b.tgz", ".."])("a name that leads out of it: %s", async (file) => {
    await using copy = await temporaryFolder();
    const inner = join(copy.path, "packages");
    await mkdir(join(inner, "a"), { recursive: true });
    const content = "bytes that are there, and have the digest of the index";
    if (file !== "..") await writeFile(join(inner, file), content);
    const integrity = `sha512-${createHash("sha512").update(content).digest("base64")}`;
    const [anyPackage] = (await packagesIn(folder)).packages;
    const index = { sources: "", packages: [{ ...anyPackage, file, integrity }] };
    await writeFile(join(inner, "index.json"), JSON.stringify(index));
    expect(() => start(inner)).toThrow(SettingsError);
  });
});
