#!/usr/bin/env node
try {
  await import("../node-version.js");
} catch (error) {
  process.stderr.write(`relay: ${error.message}\n`);
  process.exit(1);
}
await import("../lib/relay.js");
