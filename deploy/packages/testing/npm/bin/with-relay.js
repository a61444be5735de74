#!/usr/bin/env node
try {
  await import("../node-version.js");
} catch (error) {
  process.stderr.write(`with-relay: ${error.message}\n`);
  process.exit(1);
}
await import("../lib/with-relay.js");
