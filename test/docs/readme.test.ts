import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { importSecret, sign } from "relay-protocol/signing/algorithms.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import { SETTINGS, type Setting } from "relay-runtime/settings-catalogue.ts";
import { codeBlock, rowsBetween } from "../support/documents.ts";

const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");

describe("The README", () => {
  test("lists every setting with its default and description, and no other", () => {
    const expected = Object.entries(SETTINGS as Record<string, Setting>).map(([name, setting]) => [
      `\`${name}\``,
      setting.default === null ? (setting.required ? "required" : "none") : `\`${setting.default}\``,
      setting.description,
    ]);
    expect(rowsBetween(readme, "settings")).toEqual(expected);
  });

  test("says of each setting that the testing package names what that says, which stands alone", async () => {
    const testing = await readFile(new URL("../../docs/testing.md", import.meta.url), "utf8");
    const rows = rowsBetween(testing, "settings for tests");
    expect(rows.length).toBeGreaterThan(5);
    expect(rowsBetween(readme, "settings")).toEqual(expect.arrayContaining(rows));
  });

  test("shows an example of signing that prints what it says", async () => {
    const code = codeBlock(readme, "js signing-example");
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code]);
    expect(stdout).toBe(codeBlock(readme, "text signing-output"));
  });

  test("shows in it the canonical text and signature that the relay makes of the same envelope", () => {
    const code = codeBlock(readme, "js signing-example");
    const canonical = [...code.matchAll(/^ {2}'(.*)'/gm)].map(([, part]) => part).join("");
    const secret = /from\("([^"]+)", "base64url"\)/.exec(code)?.[1] ?? "";
    expect(canonicalText(JSON.parse(canonical))).toBe(canonical);
    const key = { alg: "hmac-sha256", secret: importSecret(secret) } as const;
    expect(sign(key, canonical)).toBe(codeBlock(readme, "text signing-output").trim());
    expect(createHmac("sha256", Buffer.from(secret, "base64url")).update(canonical).digest("base64url")).toBe(
      sign(key, canonical),
    );
  });

  test("names only npm scripts that exist", async () => {
    const { scripts } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
    const named = [...readme.matchAll(/npm (?:run ([a-z:]+)|(start|test))/g)].map(([, run, short]) => run ?? short);
    expect(named.length).toBeGreaterThan(5);
    for (const name of named) expect(Object.keys(scripts)).toContain(name);
  });

  test("names only paths of the catalogue in its table of HTTP surfaces", () => {
    const paths = new Set(Object.values<Surface>(SURFACES).flatMap(({ path, aliases }) => [path, ...aliases]));
    const named = [...readme.matchAll(/(?:GET|POST)`?(?:, `POST)? (\/[^`?\s]*)/g)].map(([, path]) => path);
    expect(named.length).toBeGreaterThan(8);
    for (const path of named) expect(paths).toContain(path?.replace("<id>", "{session_id}"));
  });

  test("links only to documents that exist", async () => {
    const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)].map(([, path]) => path as string);
    for (const link of links) await readFile(new URL(`../../${link}`, import.meta.url));
  });
});
