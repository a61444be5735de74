import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { CLOSE_CODES } from "protocol/contract/close-codes.ts";

const CODES: readonly number[] = Object.values(CLOSE_CODES).map(({ code }) => code);

test("Every code that the websocket library closes a connection with is one of the catalogue", async () => {
  const receiver = fileURLToPath(new URL("./receiver.js", import.meta.resolve("ws").replace(/[^/]*$/, "lib/")));
  const calls = (await readFile(receiver, "utf8")).split("this.createError(").slice(1);
  const sent = calls.map((call) => Number(/^[^)]*?\b(1[0-9]{3}),/.exec(call)?.[1]));
  expect(sent).toEqual(expect.arrayContaining([1002, 1007, 1009]));
  expect(sent.filter((code) => !CODES.includes(code))).toEqual([]);
});
