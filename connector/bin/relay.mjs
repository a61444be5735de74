#!/usr/bin/env node
// In the repository the command runs from its sources, on the Node that the repository needs. What a relay hands out
// has an entry of its own: deploy/packages/connector/npm.
const [major, minor] = process.versions.node.split(".").map(Number);

if (major > 24 || (major === 24 && minor >= 4)) {
  await import("../src/cli/main.ts");
} else {
  const help = "npx --no relay, anywhere in the repository, runs it with the Node that npm start installed on Linux.";
  process.stderr.write(`In the repository relay needs Node 24.4 or later; this is ${process.version}. ${help}\n`);
  process.exitCode = 1;
}
