import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { pastedCommands } from "../../src/cli/project/commands.ts";

const OWN = "/usr/bin/node";
const BORROWED = "/root/.npm/_npx/0123456789abcdef/node_modules/node/bin/node";
const WITH_NODE = "npx --yes --package=node@24";

async function commandsOn(language: string, execPath: string, version: string): Promise<string[]> {
  const readme = await readFile(new URL(`../../templates/${language}/README.md`, import.meta.url), "utf8");
  return pastedCommands(readme, execPath, version).map((line) => line.replace(/\s+#.*$/, "").replace(/ --key .*$/, ""));
}

/** The line that tests an agent in Python on a relay of its own. */
async function relayLineOn(execPath: string, version: string): Promise<string> {
  const lines = await commandsOn("python", execPath, version);
  return lines.find((line) => line.includes(" with-relay ")) as string;
}

test("The commands of a new project are those of its README where the machine's own Node runs", async () => {
  const commands = await commandsOn("typescript", OWN, "24.0.0");
  expect(commands).toEqual(["npm install", "npm test", "npx --no relay check", "npm start"]);
  expect(await relayLineOn(OWN, "24.0.0")).toMatch(/^npx --yes --package=\{\{testing_word\}\} with-relay /);
});

test("Where npm brought the Node, since the machine's is too old, they bring one, too", async () => {
  expect(await commandsOn("typescript", "/home/ann/relay/node_modules/node/bin/node", "24.0.0")).toContain(
    `${WITH_NODE} -- npm start`,
  );
  expect(await commandsOn("typescript", BORROWED, "24.0.0")).toEqual([
    `${WITH_NODE} -- npm install`,
    `${WITH_NODE} -- npm test`,
    `${WITH_NODE} -- relay check`,
    `${WITH_NODE} -- npm start`,
  ]);
  expect(await relayLineOn(BORROWED, "24.0.0")).toMatch(
    /^npx --yes --package=node@24 --package=\{\{testing_word\}\} with-relay /,
  );
});

test("Where the machine's own Node is too old for the package for tests alone, the tests bring one", async () => {
  const commands = await commandsOn("typescript", OWN, "22.18.0");
  expect(commands).toEqual(["npm install", `${WITH_NODE} -- npm test`, "npx --no relay check", "npm start"]);
  expect(await relayLineOn(OWN, "22.18.0")).toMatch(
    /^npx --yes --package=node@24 --package=\{\{testing_word\}\} with-relay /,
  );
});
