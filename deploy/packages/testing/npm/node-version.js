// Throws on a Node that is too old. Node 20 must be able to parse this, and whatever imports it.
const NEEDED = 24;
const version = process.versions.node;

if (Number.parseInt(version, 10) < NEEDED) {
  const before = "Install it from https://nodejs.org, or write npx --yes --package=node@24 -- before the command";
  const help = `${before}, without npx --no. A command with npx --yes --package=… takes --package=node@24 as well.`;
  throw new Error(`agent-relay-testing needs Node ${NEEDED} or later; this is Node ${version}. ${help}`);
}
