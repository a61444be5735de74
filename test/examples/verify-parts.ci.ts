import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import { jcs } from "../support/agent.ts";
import { fc } from "../support/fast-check.ts";
import { VECTORS, Verification } from "./verify-kit.ts";

const verification = new Verification();

describe("the parts of verify.py", () => {
  test("open the test vector of RFC 9180, appendix A.1.1", async () => {
    const private_key = "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8";
    const enc = "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431";
    const info = "4f6465206f6e2061204772656369616e2055726e";
    const aad = "436f756e742d30";
    const ct = "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a";
    const [key, ...rest] = [private_key, enc, info, aad, ct].map((hex) => `bytes.fromhex("${hex}")`);
    const line = `print(verify.hpke_open(verify.X25519PrivateKey.from_private_bytes(${key}), ${rest.join(", ")}).decode())`;
    expect(await verification.evaluate(line)).toBe("Beauty is truth, truth beauty\n");
  });

  test("have every number as ECMAScript writes it", async () => {
    const bits = fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { minLength: 2, maxLength: 2 });
    const doubles = fc
      .sample(bits, 3000)
      .map((halves) => new Float64Array(Int32Array.from(halves).buffer)[0] as number);
    const exponents = Array.from({ length: 60 }, (_, i) => 1.25 * 10 ** (i - 30));
    const integers = [2 ** 53 - 1, 2 ** 53, 2 ** 64, 1e20, 1e21, -1, 0];
    const numbers = [...doubles, ...exponents, ...integers].filter(Number.isFinite);
    expect(await canonicalInPython(JSON.stringify(numbers))).toBe(jcs(numbers));
  });

  // Told as skipped where the vectors do not lie: nothing was compared then.
  const whereVectorsLie = existsSync(VECTORS) ? test : test.skip;
  whereVectorsLie("have the canonical text that the vectors of RFC 8785 have", async () => {
    const names = readdirSync(new URL("input/", VECTORS));
    expect(names).not.toEqual([]);
    for (const name of names) {
      const [input, output] = ["input", "output"].map((kind) =>
        readFileSync(new URL(`${kind}/${name}`, VECTORS), "utf8"),
      );
      expect(await canonicalInPython(input as string)).toBe(output);
    }
  });

  test.each([
    ["a member that stands twice", '{"a":1,"a":2}'],
    ["one of them deep inside", '{"a":[{"b":1,"\\u0062":2}]}'],
    ["a number that is not finite", "[1e400]"],
    ["a word that is no JSON", "[NaN]"],
    ["half a surrogate pair", '["\\ud800"]'],
    ["arrays in each other without end", "[".repeat(100_000)],
  ])("refuse %s", async (_, text) => {
    await expect(canonicalInPython(text)).rejects.toThrow("Refused: malformed");
  });

  async function canonicalInPython(text: string): Promise<string> {
    const path = JSON.stringify(await verification.file(text));
    return await verification.evaluate(
      `print(verify.utf8_jcs(verify.parse(open(${path}, "rb").read())).decode(), end="")`,
    );
  }
});
