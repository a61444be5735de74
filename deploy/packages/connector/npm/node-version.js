// Throws on a Node that is too old. Node 20 must be able to parse this, and whatever imports it; other runtimes pass.
const NEEDED = 22;
const version = globalThis.process?.versions?.node;

if (version !== undefined && Number.parseInt(version, 10) < NEEDED) {
  const line = "npx --yes --package=node@24 -- node <program>";
  const help = `Without installing another: ${line}; in a project of this package also npm start and relay check in the place of node <program>, without npx --no. GET /connectors at the relay prints the line of relay elsewhere.`;
  throw new Error(`agent-relay-connector needs Node ${NEEDED} or later; this is Node ${version}. ${help}`);
}
