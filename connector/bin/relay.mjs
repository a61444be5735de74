#!/usr/bin/env node
// In the repository the command runs from its sources, which takes a Node that runs TypeScript. What a relay hands out
// has an entry of its own: deploy/packages/connector/npm.
const [major, minor] = process.versions.node.split(".").map(Number);

if (major > 22 || (major === 22 && minor >= 18)) {
  await import("../src/cli/main.ts");
} else {
  const help = "npx --no relay, anywhere in the repository, runs it with the Node that npm start installed.";
  process.stderr.write(`relay needs Node 22.18 or later; this is ${process.version}. ${help}\n`);
  process.exitCode = 1;
}
