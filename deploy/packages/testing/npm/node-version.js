// Throws on a Node that is too old. Node 20 must be able to parse this, and whatever imports it.
const NEEDED = 24;
const version = process.versions.node;

if (Number.parseInt(version, 10) < NEEDED) {
  const line = "npx --yes --package=node@24 node <program>";
  const help = `Without installing another: ${line}. GET /connectors at the relay prints the line of with-relay.`;
  throw new Error(`agent-relay-testing needs Node ${NEEDED} or later; this is Node ${version}. ${help}`);
}
