import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { LIMITS } from "relay-runtime/metrics/catalogue.ts";
import { SETTINGS } from "relay-runtime/settings-catalogue.ts";
import { rowsBetween } from "../support/documents.ts";

const rows = rowsBetween(await readFile(new URL("../../docs/security.md", import.meta.url), "utf8"), "limits");
const wordsIn = (text: string) => [...text.matchAll(/`([A-Za-z_]+)`/g)].map(([, word]) => word);

test("docs/security.md lists every limit that is counted, what bounds it, and an answer with a code, and a time where waiting helps", () => {
  expect(rows.map(([name]) => name)).toEqual(LIMITS.map((name) => `\`${name}\``));
  for (const [, bounds = "", answer = ""] of rows) {
    for (const [setting] of bounds.matchAll(/RELAY_\w+/g)) expect(Object.keys(SETTINGS)).toContain(setting);
    const codes = wordsIn(answer).filter((word) => word !== "retry_after_ms") as ErrorCode[];
    for (const code of codes) expect(Object.keys(ERRORS)).toContain(code);
    const waitingHelps = !codes.some((code) => ERRORS[code].retry === "fix");
    if (waitingHelps)
      expect(answer).toMatch(
        /Retry-After|retry_after_ms|clos(e|ed with) 1\d\d\d|closed without an answer|until the next token/,
      );
  }
});
