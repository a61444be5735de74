import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { testVectors } from "relay-protocol/signing/test-vectors.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { jcs } from "../support/agent.ts";
import { fc } from "../support/fast-check.ts";
import { type Ended, runProgram } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const FOLDER = fileURLToPath(new URL("../../connector-python", import.meta.url));
const STRICT = ["-X", "dev", "-W", "error::ResourceWarning", "-W", "error::DeprecationWarning:agent_relay_connector"];
const IMPORTED = `
import ast, pathlib, sys
names = set()
for path in pathlib.Path("src").rglob("*.py"):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import): names |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.level == 0: names.add(node.module.split(".")[0])
print(*sorted(names - sys.stdlib_module_names))`;
const PROGRAM = `
import json, sys
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.canonical import canonical_text, draft_text
from agent_relay_connector.jcs import canonicalize
from agent_relay_connector.keys import signing_key
from agent_relay_connector.strict_json import parse_json

def signed(envelope, key):
    text = canonical_text(draft_text(envelope), envelope["ts"], envelope["key_id"])
    return {"canonical": text, "sig": encode_base64url(signing_key(key).sign(text.encode()))}

given = parse_json(open(sys.argv[1], encoding="utf-8").read())
written = {name: canonicalize(given[name]) for name in ("numbers", "values")}
vectors = [signed(each["envelope"], {**each["key"], "alg": each["alg"]}) for each in given["vectors"]]
print(json.dumps({**written, "vectors": vectors}))
`;

const bits = fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { minLength: 2, maxLength: 2 });
const doubles = fc.sample(bits, 5000).map((halves) => new Float64Array(Int32Array.from(halves).buffer)[0] as number);
const exponents = Array.from({ length: 60 }, (_, i) => 1.25 * 10 ** (i - 30));
const given = {
  numbers: [...doubles, ...exponents, ...fc.sample(fc.double({ noNaN: true }), 1000)].filter(Number.isFinite),
  values: fc.sample(fc.jsonValue({ maxDepth: 4, noUnicodeString: false }), 200),
  vectors: testVectors(),
};

/** Runs Python in the package's folder. */
function run(...args: readonly string[]): Promise<Ended> {
  const env = { ...process.env, PYTHONPATH: "src", PYTHONDONTWRITEBYTECODE: "1", PYTHONUTF8: "1" };
  return runProgram(pythonProgram(), args, { cwd: FOLDER, env, maxBuffer: 20_000_000 });
}

describe("The Python package", () => {
  test("passes its own tests, which leave nothing open", async () => {
    const ended = await run(...STRICT, "-m", "unittest", "discover", "-s", "tests", "-t", ".");
    // The whole report, where a test failed.
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringMatching(/^Ran [1-9]\d* tests[\s\S]*^OK$/m)]);
  }, 120_000);

  test("has types that hold, strictly", async () => {
    const ended = await run("-m", "mypy", "--strict");
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/no issues found/) });
  }, 120_000);

  test("depends on websockets and cryptography alone", async () => {
    expect(await run("-c", IMPORTED)).toEqual({ code: 0, stdout: "cryptography websockets\n", stderr: "" });
  });
});

describe("Python, as the relay does,", () => {
  /** What Python makes of what is given. */
  let made: { numbers: string; values: string; vectors: object[] };
  beforeAll(async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "given.json");
    await writeFile(file, JSON.stringify(given));
    made = JSON.parse((await run("-c", PROGRAM, file)).stdout);
  });

  test("writes every number as ECMAScript does", () => {
    expect(made.numbers).toBe(jcs(given.numbers));
  });

  test("writes every JSON value as the relay does", () => {
    expect(made.values).toBe(jcs(given.values));
  });

  test("makes the canonical text and the signature of the relay's test vectors", () => {
    expect(made.vectors).toEqual(given.vectors.map(({ canonical, sig }) => ({ canonical, sig })));
  });
});
