#!/usr/bin/env node
// In the repository the command runs from its sources, on a Node that runs TypeScript. What a relay hands out has an entry
// of its own: deploy/packages/connector/npm.
if (process.features.typescript) {
  await import("../src/cli/main.ts");
} else {
  const npx = "npx --yes --package=node@24 -- relay <command>";
  const help = `Install it from https://nodejs.org, or have npx bring it, in this repository: ${npx}`;
  process.stderr.write(`relay needs Node 22.18 or later; this is ${process.version}. ${help}\n`);
  process.exitCode = 1;
}
