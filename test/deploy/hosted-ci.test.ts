import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { parse } from "yaml";
import { runProgram } from "../support/pod-process.ts";

interface Job {
  readonly strategy?: { readonly matrix: { readonly part: readonly string[] } };
  readonly permissions?: unknown;
  readonly steps: readonly { readonly uses?: string; readonly run?: string }[];
}

const ROOT = new URL("../../", import.meta.url);
const workflow = parse(await readFile(new URL(".github/workflows/ci.yml", ROOT), "utf8"));
const jobs = Object.values<Job>(workflow.jobs);

test("The hosted CI runs every part of .ci/run, each in a job", async () => {
  const { code, stderr } = await runProgram("bash", [fileURLToPath(new URL(".ci/run", ROOT)), "no-such-part"]);
  const [, known = ""] = /There are: (.*)$/m.exec(stderr) ?? [];
  const asked = jobs.flatMap(({ strategy, steps }) => {
    const [, part = ""] = /^bash \.ci\/run (\S+)/m.exec(steps.map(({ run = "" }) => run).join("\n")) ?? [];
    return part === "${{" ? (strategy?.matrix.part ?? []) : [part];
  });
  expect(code).toBe(2);
  expect(asked.toSorted()).toEqual(known.split(" ").toSorted());
});

test("A job of the hosted CI may read the repository and no more, and names each action by its version", () => {
  expect(workflow.permissions).toEqual({ contents: "read" });
  expect(jobs.flatMap(({ permissions }) => permissions ?? [])).toEqual([]);
  const actions = jobs.flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []));
  expect(actions.length).toBeGreaterThan(0);
  for (const action of actions) expect(action).toMatch(/@v\d+\.\d+\.\d+$/);
});

test("The update bot looks once a week into folders that have what it looks for", async () => {
  const { updates } = parse(await readFile(new URL(".github/dependabot.yml", ROOT), "utf8"));
  const marks: Readonly<Record<string, RegExp>> = {
    npm: /^package-lock\.json$/,
    pip: /^pyproject\.toml$/,
    docker: /\.yaml$/,
    "docker-compose": /^docker-compose\.yml$/,
    "github-actions": /^\.github$/,
  };
  for (const { "package-ecosystem": ecosystem, directory, directories = [directory], schedule } of updates) {
    expect(schedule).toEqual({ interval: "weekly" });
    for (const folder of directories) {
      const names = await readdir(new URL(`.${folder}`, ROOT));
      expect([ecosystem, folder, names.some((name) => marks[ecosystem]?.test(name))]).toEqual([
        ecosystem,
        folder,
        true,
      ]);
    }
  }
});
