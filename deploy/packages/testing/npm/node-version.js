// Throws on a Node that is too old. Node 20 must be able to parse this, and whatever imports it.
const NEEDED = 24;
const version = process.versions.node;

if (Number.parseInt(version, 10) < NEEDED) {
  throw new Error(`agent-relay-testing needs Node ${NEEDED} or later; this is Node ${version}.`);
}
