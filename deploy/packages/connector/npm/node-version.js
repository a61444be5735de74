// Throws on a Node that is too old. Node 20 must be able to parse this, and whatever imports it; other runtimes pass.
const NEEDED = 22;
const version = globalThis.process?.versions?.node;

if (version !== undefined && Number.parseInt(version, 10) < NEEDED) {
  const before = "Install it from https://nodejs.org, or write npx --yes --package=node@24 -- before the command";
  const help = `${before}, without npx --no. A command with npx --yes --package=… takes --package=node@24 as well.`;
  throw new Error(`agent-relay-connector needs Node ${NEEDED} or later; this is Node ${version}. ${help}`);
}
