import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "@jest/globals";
import { readGatewaySettings } from "gateway/settings.ts";
import { readOpsReportingSettings } from "ops-reporting/settings.ts";
import { SettingsError } from "relay-runtime/settings.ts";
import { SETTINGS, type SettingName } from "relay-runtime/settings-catalogue.ts";
import { readWsConnectorSettings } from "ws-connector/settings.ts";
import { fc } from "../support/fast-check.ts";
import { COMPILE_CACHE } from "../support/pod-process.ts";
import { MARK } from "./support/under-attack.ts";

const READERS = {
  gateway: readGatewaySettings,
  "ws-connector": readWsConnectorSettings,
  "ops-reporting": readOpsReportingSettings,
};
const GOOD = { REDIS_URL: `redis://user:${MARK}-password@redis:6379/0`, RELAY_KEYS_FILE: "keys.json" };
const NAMES = Object.keys(SETTINGS) as SettingName[];
const SERVICE = fc.constantFrom(...Object.values(READERS));

/** Bad for every setting: what stands before or after the mark is in no port, host, path, URL or list. */
const hostile = fc
  .tuple(
    fc.constantFrom("\0", "\n", "\u2028", "\u0430", "🙂", "\ud800", "\x1b[2J"),
    fc.string({ unit: "binary" }),
    fc.boolean(),
  )
  .map(([odd, more, isFirst]) => (isFirst ? `\0${odd}${MARK}${more}` : `${MARK}\0${odd}${more}`));
const numbers = [
  "-1",
  "1e3",
  "0x10",
  "1.5",
  "NaN",
  "Infinity",
  " 1",
  "1 ",
  "+1",
  "01",
  "9".repeat(30),
  `1${MARK}`,
  "١",
];
const badUrls = [
  "javascript:x",
  "file:///etc/passwd",
  "http://",
  "//x",
  `http://u:${MARK}@x`,
  `${MARK}`,
  "http://x:99999",
];

/** The faults of these settings, each by its name; none when they are good. */
function faultsOf(read: (env: Record<string, string>) => unknown, env: Record<string, string>): string[] {
  try {
    read({ ...GOOD, ...env });
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    expect((error as Error).message).not.toContain(MARK);
    return (error as Error).message.split("\n  ").slice(1);
  }
}

/** True when the service reads that setting at all: a value that is always bad shows it. */
const reads = (read: (typeof READERS)[keyof typeof READERS], name: string) =>
  faultsOf(read, { [name]: "\0" }).length > 0;

describe("a setting", () => {
  test("that no rule allows is refused by its name, whatever it holds, and alone", () => {
    const property = fc.property(SERVICE, fc.constantFrom(...NAMES), hostile, (read, name, value) => {
      if (!reads(read, name)) return;
      const faults = faultsOf(read, { [name]: value });
      expect(faults).toHaveLength(1);
      expect(faults[0]).toMatch(new RegExp(`^${name} [^\\n]+$`));
    });
    fc.assert(property, { numRuns: 500 });
  });

  test("of a number takes digits only, and one of a URL none with a password, a query or another scheme", () => {
    for (const read of Object.values(READERS)) {
      const named = NAMES.filter((name) => reads(read, name));
      for (const name of named.filter((one) => /PORT|_MS$|HOPS|PER|CONNECTIONS|PARTITIONS|BYTES/.test(one))) {
        for (const value of numbers)
          expect([name, value, faultsOf(read, { [name]: value }).length]).toEqual([name, value, 1]);
      }
      for (const name of named.filter((one) => one.endsWith("_URL"))) {
        for (const value of badUrls)
          expect([name, value, faultsOf(read, { [name]: value }).length]).toEqual([name, value, 1]);
      }
    }
  });

  test("is named with all other invalid ones in one message", () => {
    for (const read of Object.values(READERS)) {
      const named = NAMES.filter((name) => reads(read, name));
      const faults = faultsOf(read, Object.fromEntries(named.map((name) => [name, `\0${MARK}`])));
      expect(faults.map((fault) => fault.split(" ")[0]).sort()).toEqual(named.sort());
    }
  });
});

/** All that a service says, told to stop as soon as it has something to say. */
async function saidBy(env: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, ["services/ops-reporting/src/main.ts"], {
    env: { ...COMPILE_CACHE, PORT: "0", ...env },
  });
  const said = Promise.all([text(child.stdout), text(child.stderr)]);
  child.stdout.once("data", () => child.kill("SIGTERM"));
  await once(child, "exit");
  return (await said).join("\n");
}

test("No process prints a password in REDIS_URL, whether the URL is valid, invalid, or leads nowhere", async () => {
  const urls = [
    `redis://u:${MARK}@127.0.0.1:1`,
    `redis://:%zz${MARK}@127.0.0.1:1`,
    `redis://u:${MARK}@127.0.0.1:1/x`,
    `redis-cluster://u:${MARK}@127.0.0.1:1,127.0.0.1:2`,
    `redis-cluster://u:${MARK}@127.0.0.1:1,127.0.0.1:2/0`,
  ];
  const said = await Promise.all(urls.map((url) => saidBy({ REDIS_URL: url })));
  for (const one of said) {
    expect(one).not.toBe("");
    expect(one).not.toContain(MARK);
  }
  expect(said[1]).toContain("REDIS_URL");
  expect(said[2]).toContain("REDIS_URL");
});
