import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import names from "../../deploy/release/base-images.json" with { type: "json" };

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const read = (file: string) => readFileSync(join(REPOSITORY, file), "utf8");

/** Files that bring images up. */
const deployed = execFileSync(
  "git",
  ["-C", REPOSITORY, "ls-files", "docker-compose*.yml", "deploy/**/*.yaml", "deploy/**/*.yml"],
  {
    encoding: "utf8",
  },
)
  .trim()
  .split("\n");

test("every image of others that is deployed stands in base-images.json", () => {
  const images = deployed.flatMap((file) =>
    [...read(file).matchAll(/^\s*(?:- )?image:\s*["']?([^\s"'#]+)/gm)].map(([, image]) => image as string),
  );
  const others = images.filter((image) => !/(?:^|\/)agent-relay\//.test(image));
  expect(others.length).toBeGreaterThan(2);
  expect([...new Set(others)].filter((image) => !Object.values(names).includes(image))).toEqual([]);
});

test("every package has the version of the whole", () => {
  const tracked = execFileSync("git", ["-C", REPOSITORY, "ls-files", "package.json", "**/package.json"], {
    encoding: "utf8",
  });
  const versions = tracked
    .trim()
    .split("\n")
    .map((file) => [file, JSON.parse(read(file)).version]);
  const { version } = JSON.parse(read("package.json"));
  expect(versions.filter(([, other]) => other !== undefined && other !== version)).toEqual([]);
  expect(/^version = "(.*)"$/m.exec(read("connector-python/pyproject.toml"))?.[1]).toBe(version);
});

test("the images of the relay are built on the Node of base-images.json", () => {
  const dockerfile = read("deploy/docker/Dockerfile");
  expect(/^ARG NODE_IMAGE=(.*)$/m.exec(dockerfile)?.[1]).toBe(names.node);
  const stages = [...dockerfile.matchAll(/^FROM (\S+)(?: AS (\S+))?/gm)];
  const own = stages.map(([, , name]) => name);
  expect(stages.filter(([, base]) => base !== `$\{NODE_IMAGE}` && !own.includes(base))).toEqual([]);
});
