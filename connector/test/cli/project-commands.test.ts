import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { pastedCommands } from "../../src/cli/project/commands.ts";

const readme = await readFile(new URL("../../templates/typescript/README.md", import.meta.url), "utf8");

const commandsOn = (execPath: string) =>
  pastedCommands(readme, execPath).map((line) => line.replace(/\s+#.*$/, "").replace(/ --key .*$/, ""));

test("The commands of a new project are those of its README where the machine's own Node runs", () => {
  expect(commandsOn("/usr/bin/node")).toEqual(["npm install", "npm test", "npx --no relay check", "npm start"]);
});

test("Where npx brought the Node, since the machine's is too old, they bring one, too", () => {
  const within = "npx --yes --package=node@24 --";
  const execPath = "/root/.npm/_npx/0123456789abcdef/node_modules/node/bin/node";
  expect(commandsOn(execPath)).toEqual([
    "npm install",
    `${within} npm test`,
    `${within} relay check`,
    `${within} npm start`,
  ]);
});
