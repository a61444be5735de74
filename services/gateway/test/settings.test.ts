import { expect, test } from "@jest/globals";
import { createLogger } from "relay-runtime/logging.ts";
import { warnWithoutContact } from "../src/settings.ts";

function warnedOf(baseUrl: string, contact?: string): unknown[] {
  const lines: string[] = [];
  warnWithoutContact(
    { baseUrl, contact },
    createLogger({ service: "gateway", level: "warn" }, { write: (line) => lines.push(line) }),
  );
  return lines.map((line) => JSON.parse(line).setting);
}

test("A relay for others without a contact warns at its start", () => {
  expect(warnedOf("https://relay.example")).toEqual(["RELAY_CONTACT"]);
  expect(warnedOf("http://127.example:8080")).toEqual(["RELAY_CONTACT"]);
});

test.each([
  ["one with a contact", "https://relay.example", "mailto:relay@example.org"],
  ["one on this machine alone", "http://127.0.0.1:8080", undefined],
  ["one on this machine alone, by IPv6", "http://[::1]:8080", undefined],
  ["one on this machine alone, by name", "http://localhost:8080", undefined],
])("%s does not", (_relay, baseUrl, contact) => {
  expect(warnedOf(baseUrl, contact)).toEqual([]);
});
