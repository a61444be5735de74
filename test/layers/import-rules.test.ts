import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "@jest/globals";
import { type Ended, runProgram } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** `npm run check` refuses an import against the layers: one is planted for each rule. */

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
const BIOME = join(REPOSITORY, "node_modules/@biomejs/biome/bin/biome");
const RESTRICTED = "lint/style/noRestrictedImports";
const CIRCLE = "lint/suspicious/noImportCycles";

const importing = (specifier: string) => `export { thing } from "${specifier}";\n`;
const restricted = (file: string, specifier: string) => ({ file, text: importing(specifier), rule: RESTRICTED });

const PLANTED = [
  restricted("shared/protocol/src/to-runtime.ts", "relay-runtime/thing.ts"),
  restricted("shared/protocol/src/to-window.ts", "relay-window/thing.ts"),
  restricted("shared/protocol/src/to-service.ts", "gateway/thing.ts"),
  restricted("shared/protocol/src/by-path.ts", "../../runtime/src/thing.ts"),
  restricted("shared/protocol/src/to-files.ts", "node:fs/promises"),
  restricted("shared/protocol/src/to-redis.ts", "ioredis"),
  restricted("shared/protocol/src/wire/to-zod.ts", "zod"),
  restricted("shared/protocol/src/wire/to-node.ts", "node:crypto"),
  restricted("shared/protocol/src/wire/to-schemas.ts", "../contract/thing.ts"),
  restricted("shared/runtime/src/to-window.ts", "relay-window/thing.ts"),
  restricted("shared/runtime/src/to-service.ts", "ws-connector/thing.ts"),
  restricted("shared/runtime/src/to-redis.ts", "ioredis"),
  restricted("shared/window/src/to-service.ts", "ops-reporting/thing.ts"),
  restricted("shared/window/src/by-path.ts", "../../../services/gateway/src/thing.ts"),
  restricted("services/gateway/src/to-service.ts", "ws-connector/thing.ts"),
  restricted("services/gateway/src/to-redis.ts", "ioredis"),
  restricted("services/gateway/src/api/to-discovery.ts", "../discovery/thing.ts"),
  restricted("services/gateway/src/api/to-pages.ts", "../pages/thing.ts"),
  restricted("services/gateway/src/api/to-service.ts", "ops-reporting/thing.ts"),
  restricted("services/gateway/src/api/to-redis.ts", "ioredis"),
  restricted("services/gateway/src/discovery/to-pages.ts", "../pages/thing.ts"),
  restricted("services/gateway/src/discovery/to-redis.ts", "ioredis"),
  restricted("services/gateway/src/pages/to-api.ts", "../api/thing.ts"),
  restricted("services/gateway/src/pages/to-discovery.ts", "../discovery/thing.ts"),
  restricted("services/gateway/src/pages/to-redis.ts", "ioredis"),
  restricted("services/ws-connector/src/to-service.ts", "gateway/thing.ts"),
  restricted("services/ws-connector/src/to-redis.ts", "ioredis"),
  restricted("services/ops-reporting/src/to-service.ts", "gateway/thing.ts"),
  restricted("services/ops-reporting/src/to-redis.ts", "ioredis"),
  restricted("connector/src/to-protocol.ts", "relay-protocol/thing.ts"),
  restricted("connector/src/by-path.ts", "../../shared/protocol/src/thing.ts"),
  restricted("connector/src/to-node.ts", "node:fs"),
  restricted("connector/src/to-cli.ts", "./cli/thing.ts"),
  restricted("connector/src/cli/to-runtime.ts", "relay-runtime/thing.ts"),
  restricted("connector/src/mcp/to-service.ts", "../../../services/gateway/src/thing.ts"),
  {
    file: "connector/src/buffer.ts",
    text: "export const bytes = Buffer.of(1);\n",
    rule: "lint/style/noRestrictedGlobals",
  },
  { file: "services/gateway/src/one.ts", text: importing("./two.ts"), rule: CIRCLE },
  { file: "services/gateway/src/two.ts", text: importing("./one.ts"), rule: CIRCLE },
  {
    file: "shared/window/src/type-one.ts",
    text: `import type { Two } from "./type-two.ts";\nexport type One = Two | null;\n`,
    rule: CIRCLE,
  },
  {
    file: "shared/window/src/type-two.ts",
    text: `import type { One } from "./type-one.ts";\nexport type Two = { readonly one: One };\n`,
    rule: CIRCLE,
  },
  {
    file: "shared/runtime/src/undeclared.ts",
    text: importing("left-pad"),
    rule: "lint/correctness/noUndeclaredDependencies",
  },
  {
    file: "shared/runtime/src/extension.ts",
    text: importing("./declared"),
    rule: "lint/correctness/useImportExtensions",
  },
];
const GOOD = "shared/runtime/src/declared.ts";
const GOOD_CONNECTOR = "connector/src/cli/to-wire.ts";

/** Rules that were broken, as errors, by file. */
let broken: Map<string, string[]>;
let exitCode: Ended["code"];

beforeAll(async () => {
  await using tree = await temporaryFolder();
  await copyFile(join(REPOSITORY, "biome.json"), join(tree.path, "biome.json"));
  await put(
    tree.path,
    "shared/runtime/package.json",
    `{ "name": "relay-runtime", "dependencies": { "relay-protocol": "*" } }\n`,
  );
  await put(tree.path, GOOD, importing("relay-protocol/thing.ts"));
  await put(tree.path, GOOD_CONNECTOR, importing("relay-protocol/wire/thing.ts"));
  for (const { file, text } of PLANTED) await put(tree.path, file, text);
  const { code, stdout } = await check(tree.path);
  exitCode = code;
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: Diagnostic[] };
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  const byFile = Map.groupBy(errors, ({ location }) => pathOf(location));
  broken = new Map([...byFile].map(([file, all]) => [file, all.map(({ category }) => category)]));
});

test("The check fails on a tree with these imports, and finds no fault with those that keep the rules", () => {
  expect(exitCode).toBe(1);
  expect(broken.get(GOOD)).toBeUndefined();
  expect(broken.get(GOOD_CONNECTOR) ?? []).not.toContain(RESTRICTED);
});

test.each(PLANTED)("$file breaks $rule", ({ file, rule }) => {
  expect(broken.get(file)).toContain(rule);
});

interface Diagnostic {
  readonly severity: string;
  readonly category: string;
  readonly location: { readonly path: string | { readonly file: string } };
}

function pathOf({ path }: Diagnostic["location"]): string {
  return typeof path === "string" ? path : path.file;
}

async function put(folder: string, file: string, text: string): Promise<void> {
  const path = join(folder, file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

function check(cwd: string): Promise<Ended> {
  const args = [BIOME, "check", "--reporter=json", "--max-diagnostics=none", "."];
  return runProgram(process.execPath, args, { cwd, maxBuffer: 2 ** 25 });
}
