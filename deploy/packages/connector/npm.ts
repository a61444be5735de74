import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ADDRESS, CONNECTOR_PACKAGE, RELAY_ADDRESS } from "relay-protocol/contract/packages.ts";
import { bundle, notices, REQUIRE } from "../bundle.ts";
import { declarations } from "../declarations.ts";
import { packedFrom, textOf } from "../files.ts";
import { firstProgramIn } from "../first-program.ts";
import type { Draft } from "../release.ts";
import { type PackedText, tarball } from "../tarball.ts";
import { PLACEHOLDER, stamped } from "../version.ts";
import { FOR_BROWSERS } from "./browser.ts";

/** What connector/package.json says that holds for the package, too. */
interface Manifest {
  readonly name: string;
  readonly description: string;
}

const CONNECTOR = fileURLToPath(new URL("../../../connector", import.meta.url));

/** Its entries as the package has them, which say so where Node is too old. */
const ENTRIES = fileURLToPath(new URL("npm", import.meta.url));

/** Library, command and MCP server in one npm package that depends on no other. */
export async function npmPackage({ name, description }: Manifest): Promise<Draft> {
  const modules = {
    connector: "connector/src/index.ts",
    "key-file": "connector/src/cli/library.ts",
    relay: "connector/src/cli/main.ts",
  };
  const [{ files, bundled }, browser, types, entries, templates, readme, reference] = await Promise.all([
    bundle(modules, "connector/package.json", {
      platform: "node",
      splitting: true,
      banner: { js: REQUIRE },
      // Of ws, which goes without them.
      external: ["bufferutil", "utf-8-validate"],
    }),
    bundle({ browser: modules.connector }, "connector/package.json", FOR_BROWSERS),
    declarations({ folder: "connector/src", entries: ["index", "cli/library"], lib: ["es2024", "dom"] }),
    packedFrom(ENTRIES),
    // What `relay init` copies.
    packedFrom(join(CONNECTOR, "templates"), CONNECTOR),
    textOf(join(CONNECTOR, "README.md")),
    textOf(join(CONNECTOR, "CLI.md")),
  ]);
  // No `engines`: npm warns by its own Node, not by the one that npx fetches. The entries check the Node that runs them.
  const manifest = {
    name,
    version: PLACEHOLDER,
    description,
    type: "module",
    exports: {
      ".": { types: "./types/index.d.ts", browser: "./lib/browser.js", default: "./index.js" },
      "./key-file": { types: "./types/cli/library.d.ts", default: "./key-file.js" },
    },
    bin: { relay: "bin/relay.js" },
  };
  const packed: PackedText[] = [
    { path: "package.json", text: `${JSON.stringify(manifest, null, 2)}\n` },
    { path: "README.md", text: readme },
    { path: "CLI.md", text: reference },
    { path: "THIRD-PARTY.txt", text: await notices(bundled) },
    ...entries,
    ...templates,
    ...[...types].map(([file, text]) => ({ path: `types/${file}`, text })),
    ...[...files, ...browser.files].map(([file, text]) => ({ path: `lib/${file}`, text })),
  ];
  const npx = `npx --yes --package=${ADDRESS} relay`;
  const withNode = `npx --yes --package=node@24 --package=${ADDRESS} relay`;
  return {
    name: CONNECTOR_PACKAGE,
    media: "application/gzip",
    purpose: "Connects an agent, from Node: a library, the command relay, and an MCP server (relay mcp).",
    needs: "Node 22 or later, which the package node of npm's registry brings where the machine's is older",
    usage: [
      { for: "run the command", line: `${npx} --help` },
      { for: "run it where Node is older than 22, with one of npm's registry", line: `${withNode} --help` },
      {
        for: "write an agent to start from, with its test, into a new folder; --language python for one in Python",
        line: `${npx} init weather --url ${RELAY_ADDRESS}`,
      },
      { for: "add the library to a project", line: `npm install ${ADDRESS}` },
      {
        for: 'make a new project one of modules, and in TypeScript have the types of Node, besides "types": ["node"] in tsconfig.json',
        line: "npm pkg set type=module && npm install --save-dev typescript @types/node",
      },
      { for: "import it", line: `import { Connector } from "${CONNECTOR_PACKAGE}";` },
      { for: "command of an MCP client's configuration; RELAY_URL and RELAY_KEY_FILE in its env", line: `${npx} mcp` },
      {
        for: "MCP over HTTP, for clients that start no command; the same two variables, and the token as CLI.md#mcp-over-http says",
        line: `${npx} mcp --http 127.0.0.1:7300`,
      },
    ],
    first_program: firstProgramIn(readme, "ts key-file"),
    manual: `node_modules/${CONNECTOR_PACKAGE}/README.md, once it is installed; CLI.md beside it for the command`,
    file: (version) => `${CONNECTOR_PACKAGE}-${version}.tgz`,
    contents: (version) => tarball(packed.map((file) => ({ ...file, text: stamped(file.text, version) }))),
  };
}
