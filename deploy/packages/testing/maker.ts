import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ADDRESS } from "relay-protocol/contract/packages.ts";
import { bundle, notices, REQUIRE } from "../bundle.ts";
import { declarations } from "../declarations.ts";
import { packedFrom, textOf } from "../files.ts";
import type { Draft, Maker } from "../release.ts";
import { type PackedText, tarball } from "../tarball.ts";
import { PLACEHOLDER, stamped } from "../version.ts";
import { filesBesideModules, inPackage } from "./in-package.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const MANIFEST = "testing/package.json";
const README = "docs/testing.md";
const TOLD_IN_FILES = "deploy/docker/told-in-files.ts";
/** What `deploy/local` uses of them. */
const OF_REDIS = ["deploy/redis/cluster-forming.ts", "deploy/redis/redis-words.ts"];
/** What the relay is made of. */
const RELAY = [
  ...["shared/protocol/src", "shared/runtime/src", "shared/window/src"],
  ...["services/gateway/src", "services/ws-connector/src", "services/ops-reporting/src"],
];
/** Loaded only where a collector is named, which a test has no use for. */
const TRACING = ["core", "exporter-trace-otlp-proto", "resources", "sdk-trace"].map((name) => `@opentelemetry/${name}`);
const THREADS = { "verification-thread": "shared/runtime/src/verification/verification-thread.ts" };
/** Its entries as the package has them, which say so where Node is too old. */
const ENTRIES = fileURLToPath(new URL("npm", import.meta.url));

/** The whole relay for tests: an npm package for Node. */
export const testing: Maker = {
  sources: [
    "testing/src",
    MANIFEST,
    README,
    "deploy/local",
    "deploy/keys",
    ...OF_REDIS,
    TOLD_IN_FILES,
    "tsconfig.base.json",
    ...RELAY,
  ],
  make: async () => {
    const manifest = JSON.parse(await readFile(join(ROOT, MANIFEST), "utf8"));
    return { number: manifest.version, drafts: [await npmPackage(manifest)] };
  },
};

async function npmPackage(source: Manifest): Promise<Draft> {
  const modules = {
    testing: "testing/src/index.ts",
    container: "testing/src/container.ts",
    "with-relay": "testing/src/with-relay.ts",
    ...THREADS,
  };
  const [{ files, bundled }, types, entries, beside, readme] = await Promise.all([
    bundle(modules, MANIFEST, {
      platform: "node",
      splitting: true,
      banner: { js: REQUIRE },
      alias: { "sodium-native": "./deploy/packages/testing/sodium.ts" },
      external: [...Object.keys(source.peerDependenciesMeta), ...TRACING],
      plugins: [inPackage(ROOT, Object.keys(THREADS))],
    }),
    declarations({ folder: "testing/src", entries: ["index", "container"], lib: ["es2024"] }),
    packedFrom(ENTRIES),
    filesBesideModules(ROOT, RELAY),
    textOf(join(ROOT, README)),
  ]);
  const packed: PackedText[] = [
    { path: "package.json", text: `${JSON.stringify(manifestOf(source), null, 2)}\n` },
    { path: "README.md", text: readme },
    { path: "THIRD-PARTY.txt", text: await notices(bundled) },
    ...entries,
    ...beside,
    ...[...types].map(([file, text]) => ({ path: `types/${file}`, text })),
    ...[...files].map(([file, text]) => ({ path: `lib/${file}`, text })),
  ];
  return {
    name: source.name,
    media: "application/gzip",
    purpose: "Starts a relay for the tests of an agent: in Node, around any command (with-relay), or in a container.",
    needs:
      "Node 24 or later, which the package node of npm's registry brings where the machine's is older, and Redis 7 or later on the PATH or in REDIS_URL; for a container testcontainers",
    usage: [
      { for: "add it to a project", line: `npm install ${ADDRESS} --save-dev` },
      { for: "import it in a test", line: `import { startRelay } from "${source.name}";` },
      {
        for: "run a test command of any language beside a relay; RELAY_URL and RELAY_KEYS name the relay and the key files",
        line: `npx --yes --package=${ADDRESS} with-relay alice bob -- .venv/bin/python -m pytest`,
      },
      {
        for: "the same where Node is older than 24, with one of npm's registry",
        line: `npx --yes --package=node@24 --package=${ADDRESS} with-relay alice bob -- .venv/bin/python -m pytest`,
      },
      {
        for: "run the tests of a project in Node where Node is older than 24",
        line: "npx --yes --package=node@24 npm test",
      },
    ],
    manual: `node_modules/${source.name}/README.md, once it is installed`,
    file: (version) => `${source.name}-${version}.tgz`,
    contents: (version) => tarball(packed.map((file) => ({ ...file, text: stamped(file.text, version) }))),
  };
}

/** What testing/package.json says that holds for the package, too. */
interface Manifest {
  readonly name: string;
  readonly description: string;
  /** Optional peers. `peerDependencies` does not name them: npm would ask a registry for each, wanted or not. */
  readonly peerDependenciesMeta: object;
}

/** No `engines`: npm warns by its own Node, not by the one that npx fetches. The entries check the Node that runs them. */
function manifestOf({ name, description, peerDependenciesMeta }: Manifest): object {
  const entry = (file: string) => ({ types: `./types/${file}.d.ts`, default: `./${file}.js` });
  return {
    name,
    version: PLACEHOLDER,
    description,
    type: "module",
    peerDependenciesMeta,
    exports: { ".": entry("index"), "./container": entry("container") },
    bin: { "with-relay": "bin/with-relay.js" },
  };
}
