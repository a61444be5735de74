import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import fc from "fast-check";
import { testVectors } from "protocol/signing/test-vectors.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { PYTHON_SOURCES } from "../examples/python-agent.ts";
import { jcs } from "../support/agent.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** What code prints that has the parsed JSON of the value as `given`. */
async function python(value: unknown, code: string): Promise<string> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "given.json");
  await writeFile(file, JSON.stringify(value));
  const read = `
import sys
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.canonical import canonical_text, draft_text
from agent_relay_connector.jcs import canonicalize
from agent_relay_connector.keys import signing_key
from agent_relay_connector.strict_json import parse_json
given = parse_json(open(sys.argv[1], encoding="utf-8").read())
`;
  const env = { PYTHONPATH: PYTHON_SOURCES, PYTHONUTF8: "1", PYTHONDONTWRITEBYTECODE: "1" };
  const options = { env, maxBuffer: 20_000_000 };
  return (await promisify(execFile)(pythonProgram(), ["-c", `${read}${code}`, file], options)).stdout;
}

test("Python writes every number as ECMAScript does", async () => {
  const bits = fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { minLength: 2, maxLength: 2 });
  const doubles = fc.sample(bits, 5000).map((halves) => new Float64Array(Int32Array.from(halves).buffer)[0] as number);
  const exponents = Array.from({ length: 60 }, (_, i) => 1.25 * 10 ** (i - 30));
  const numbers = [...doubles, ...exponents, ...fc.sample(fc.double({ noNaN: true }), 1000)].filter(Number.isFinite);
  expect(await python(numbers, 'print(canonicalize(given), end="")')).toBe(jcs(numbers));
});

test("Python writes every JSON value as the relay does", async () => {
  const values = fc.sample(fc.jsonValue({ maxDepth: 4, noUnicodeString: false }), 200);
  expect(await python(values, 'print(canonicalize(given), end="")')).toBe(jcs(values));
});

test("Python makes the canonical text and the signature of the relay's test vectors", async () => {
  const vectors = testVectors();
  const code = `
for vector in given:
    envelope, key = vector["envelope"], {**vector["key"], "alg": vector["alg"]}
    text = canonical_text(draft_text(envelope), envelope["ts"], envelope["key_id"])
    assert text == vector["canonical"]
    print(encode_base64url(signing_key(key).sign(text.encode())))`;
  expect(await python(vectors, code)).toBe(`${vectors.map(({ sig }) => sig).join("\n")}\n`);
});
