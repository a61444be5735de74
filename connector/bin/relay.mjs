#!/usr/bin/env node
// In the repository the command line runs from its sources; the published package has it compiled.
import { existsSync } from "node:fs";

const source = new URL("../src/cli/main.ts", import.meta.url);
const isSource = existsSync(source);
// From 22.18 on, Node runs TypeScript.
const [needed, isNewEnough] = isSource ? ["22.18", runs(22, 18)] : ["22", runs(22, 0)];

if (isNewEnough) {
  await import(isSource ? source.href : "../dist/cli/main.js");
} else {
  const help = isSource
    ? " npx relay, anywhere in the repository, runs it with the Node that npm start installed."
    : "";
  process.stderr.write(`relay needs Node ${needed} or later; this is ${process.version}.${help}\n`);
  process.exitCode = 1;
}

function runs(leastMajor, leastMinor) {
  const [major, minor] = process.versions.node.split(".").map(Number);
  return major > leastMajor || (major === leastMajor && minor >= leastMinor);
}
