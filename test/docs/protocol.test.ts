import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { CREDENTIAL_REASONS } from "relay-protocol/wire/credential.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { rowsBetween } from "../support/documents.ts";

const protocol = await readFile(new URL("../../docs/protocol.md", import.meta.url), "utf8");

describe("docs/protocol.md", () => {
  test("lists every error code of the catalogue as the relay gives it", () => {
    const expected = Object.entries(ERRORS).map(([code, error]) => [
      `\`${code}\``,
      String(error.httpStatus ?? "–"),
      error.websocket ? "yes" : "–",
      error.retry,
      error.title,
      error.hint,
    ]);
    expect(rowsBetween(protocol, "errors")).toEqual(expected);
  });

  test("lists every reason for which a credential is refused", () => {
    const expected = Object.entries(CREDENTIAL_REASONS).map(([reason, { means, hint }]) => [
      `\`${reason}\``,
      means,
      hint,
    ]);
    expect(rowsBetween(protocol, "credential reasons")).toEqual(expected);
  });

  test("lists every close code", () => {
    const expected = Object.values(CLOSE_CODES).map(({ code, reason, reconnect, advice }) => [
      String(code),
      reason || "–",
      reconnect ? "yes" : "no",
      advice,
    ]);
    expect(rowsBetween(protocol, "close codes")).toEqual(expected);
  });
});
