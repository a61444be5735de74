import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import { FILE_TIMES, FileFollower } from "../src/files.ts";

beforeEach(() => void jest.replaceProperty(FILE_TIMES, "pollMs", 2));
afterEach(() => void jest.restoreAllMocks());

test("Files count as in use again only when their new content was taken, and are read again until it is", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "file");
  await writeFile(path, "first");
  const events: string[] = [];
  const problems = ["one", "another", "another"];
  const follower = new FileFollower({
    paths: [path],
    read: async () => {},
    loaded: (_, isFirst) => {
      const problem = isFirst ? undefined : problems.shift();
      if (problem !== undefined) throw new Error(problem);
      events.push(isFirst ? "first" : "loaded");
    },
    failed: (error) => void events.push((error as Error).message),
    recovered: () => void events.push("recovered"),
  });
  await follower.start();
  await writeFile(`${path}.new`, "second");
  await rename(`${path}.new`, path);
  await until("it is in use", () => events.includes("recovered"));
  follower.stop();
  expect(events).toEqual(["first", "one", "another", "loaded", "recovered"]);
  expect(follower.isFailing).toBe(false);
});

test("Files that change while they are read are read again, and taken once", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "file");
  await writeFile(path, "old");
  const taken: string[] = [];
  const follower = new FileFollower({
    paths: [path],
    read: async () => {
      const text = await readFile(path, "utf8");
      if (text === "old") await writeFile(path, "new, and longer");
      return text;
    },
    loaded: (text) => void taken.push(text),
    failed: (error) => {
      throw error;
    },
  });
  await follower.start();
  follower.stop();
  expect(taken).toEqual(["new, and longer"]);
});
