import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "@jest/globals";
import { testVectors } from "relay-protocol/signing/test-vectors.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { PYTHON_SOURCES } from "../examples/python-agent.ts";
import { jcs } from "../support/agent.ts";
import { fc } from "../support/fast-check.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

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

/** What Python makes of what is given. */
let made: { numbers: string; values: string; vectors: object[] };
beforeAll(async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "given.json");
  await writeFile(file, JSON.stringify(given));
  const env = { PYTHONPATH: PYTHON_SOURCES, PYTHONUTF8: "1", PYTHONDONTWRITEBYTECODE: "1" };
  const options = { env, maxBuffer: 20_000_000 };
  made = JSON.parse((await promisify(execFile)(pythonProgram(), ["-c", PROGRAM, file], options)).stdout);
});

test("Python writes every number as ECMAScript does", () => {
  expect(made.numbers).toBe(jcs(given.numbers));
});

test("Python writes every JSON value as the relay does", () => {
  expect(made.values).toBe(jcs(given.values));
});

test("Python makes the canonical text and the signature of the relay's test vectors", () => {
  expect(made.vectors).toEqual(given.vectors.map(({ canonical, sig }) => ({ canonical, sig })));
});
