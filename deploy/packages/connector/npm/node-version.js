// Throws on a Node that is too old. Node 20 must be able to parse this, and whatever imports it; other runtimes pass.
const NEEDED = 22;
const version = globalThis.process?.versions?.node;

if (version !== undefined && Number.parseInt(version, 10) < NEEDED) {
  throw new Error(`agent-relay-connector needs Node ${NEEDED} or later; this is Node ${version}.`);
}
