import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";

const read = (file: string) => readFile(new URL(`../../${file}`, import.meta.url), "utf8");

test("CONTRIBUTING.md says of every test that is not run on a Redis Cluster why, and of no other", async () => {
  const [, chapter = ""] = /\n### On a Redis Cluster\n(.*?)\n### /s.exec(await read("CONTRIBUTING.md")) ?? [];
  const told = [...chapter.matchAll(/`((?:conformance|integration)\/[\w-]+\.test\.ts)`/g)].map(([, file]) => file);
  const config = await read("test/cluster/jest.config.mjs");
  const leftOut = [...config.matchAll(/"test\/(.*\.test\.ts)"/g)].map(([, file]) => file);
  expect(leftOut.length).toBeGreaterThan(0);
  expect(told.sort()).toEqual(leftOut.sort());
});
