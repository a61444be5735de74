import { access, readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { MUTATIONS } from "./catalogue.ts";
import { applied } from "./mutation.ts";

const REPOSITORY = new URL("../../../", import.meta.url);

test.each(MUTATIONS)("$name can be switched off, and names tests that exist", async (mutation) => {
  const source = await readFile(new URL(mutation.file, REPOSITORY), "utf8");
  expect(applied(mutation, source)).not.toBe(source);
  expect(mutation.tests.length).toBeGreaterThan(0);
  for (const path of mutation.tests) await access(new URL(path, REPOSITORY));
});

test("every protection has a name of its own", () => {
  expect(new Set(MUTATIONS.map(({ name }) => name)).size).toBe(MUTATIONS.length);
});

test("a text that moved, or stands in its file twice, is an error", () => {
  const mutation = { name: "guard", file: "a.ts", find: "x", replace: "", tests: [] };
  for (const source of ["", "a", "x and x"]) expect(() => applied(mutation, source)).toThrow(/exactly once/);
  expect(applied(mutation, "a x b")).toBe("a  b");
});
