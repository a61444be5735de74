import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { FILE_TIMES } from "relay-runtime/files.ts";
import { KeyStore } from "relay-runtime/key-store.ts";
import { SettingsError } from "relay-runtime/settings.ts";
import { makeApiKey, makeEd25519Key, makeHmacKey } from "../../deploy/keys/make.ts";
import { fc } from "../support/fast-check.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { badJson, badValue } from "./support/envelopes.ts";
import { MARK } from "./support/under-attack.ts";

type Record = { readonly [field: string]: unknown };
type File = { readonly api_keys: readonly Record[]; readonly signing_keys: readonly Record[] };

const agents = ["agent://alice"];
const GOOD: File = {
  signing_keys: [makeEd25519Key({ id: "ed", agents }).record, makeHmacKey({ id: "mac", agents }).record],
  api_keys: [makeApiKey({ id: "api", agents }).record],
};
const SECRETS = [MARK, (GOOD.signing_keys[1] as Record).secret, (GOOD.api_keys[0] as Record).sha256] as string[];
/** What a fault is called: a list, a place in it and a field, or the file as a whole. */
const NAMES_A_PLACE =
  /(?:signing_keys|api_keys)(?:\.\d+(?:\.[a-z0-9_ .]+)?)?: |\(root\): |unknown field: |not JSON|is not UTF-8/;

const folder = given(() => temporaryFolder());
beforeAll(() => void jest.replaceProperty(FILE_TIMES, "pollMs", 1));
afterAll(async () => {
  jest.restoreAllMocks();
  await folder[Symbol.asyncDispose]();
});

const keysFile = () => join(folder.path, "keys.json");

function storeOf(errors: unknown[] = []): KeyStore {
  return new KeyStore({
    path: keysFile(),
    logger: { info: () => {}, error: (line: unknown) => void errors.push(line) },
  });
}

async function put(text: string | Uint8Array): Promise<void> {
  const next = `${keysFile()}.new`;
  await writeFile(next, text);
  await rename(next, keysFile());
}

/** The fault that keeps a store from starting with this file; it names a place and quotes nothing. */
async function expectRefused(text: string | Uint8Array): Promise<string> {
  await put(text);
  const store = storeOf();
  const error = await store.start().catch((reason: unknown) => reason);
  store.stop();
  expect(error).toBeInstanceOf(SettingsError);
  const { problems } = error as SettingsError;
  const message = problems.map((problem) => problem.replace("RELAY_KEYS_FILE: ", "")).join("; ");
  expect(message).toMatch(NAMES_A_PLACE);
  for (const problem of problems) expect(String(error)).toContain(problem);
  for (const secret of SECRETS) expect(String(error)).not.toContain(secret);
  return message;
}

/** The good file with one field of one key made another. */
function spoiled(list: keyof File, index: number, field: string, value: unknown): File {
  const records = GOOD[list].map((record, at) => (at === index ? { ...record, [field]: value } : record));
  return { ...GOOD, [list]: records };
}

const KEYS = [
  ["signing_keys", 0],
  ["signing_keys", 1],
  ["api_keys", 0],
] as const;
const record = fc.constantFrom(...KEYS);
const fieldOf = ([list, index]: (typeof KEYS)[number]) => fc.constantFrom(...Object.keys(GOOD[list][index] as Record));
const place = record.chain((key) => fc.tuple(fc.constant(key), fieldOf(key)));
/** No key, id, time or agent list is ever one of these. */
const neverGood = badValue.filter((value) => typeof value !== "string" || !/^[A-Za-z0-9._-]{1,128}$/.test(value));

describe("a keys file is refused at start, with its place and without its text,", () => {
  test("when any field is something else", async () => {
    const property = fc.asyncProperty(place, neverGood, async ([[list, index], field], value) => {
      const message = await expectRefused(JSON.stringify(spoiled(list, index, field, value)));
      expect(message).toContain(`${list}.${index}.${field}`);
    });
    await fc.assert(property, { numRuns: 150 });
  });

  test("when any field is spelled as JSON should not be", async () => {
    const property = fc.asyncProperty(place, badJson, async ([[list, index], field], text) => {
      const file = JSON.stringify(spoiled(list, index, field, MARK));
      await expectRefused(file.replace(`"${MARK}"`, () => text));
    });
    await fc.assert(property, { numRuns: 80 });
  });

  test("when a field is missing, or one that nobody knows is there, be it a member of every object", async () => {
    for (const [list, index] of KEYS) {
      for (const field of Object.keys(GOOD[list][index] as Record)) {
        expect(await expectRefused(JSON.stringify(spoiled(list, index, field, undefined)))).toContain(
          `${list}.${index}`,
        );
      }
      for (const field of ["constructor", "toString", "private_key", "valid_until", MARK, ""]) {
        const message = await expectRefused(JSON.stringify(spoiled(list, index, field, MARK)));
        expect(message).toContain(`${list}.${index}.unknown field`);
      }
    }
    for (const field of ["constructor", "keys", MARK]) await expectRefused(JSON.stringify({ ...GOOD, [field]: [] }));
  });

  test("when it is any other JSON", async () => {
    const other = fc.json({ stringUnit: "binary" }).filter((text) => text.replace(/\s/g, "") !== "{}");
    await fc.assert(
      fc.asyncProperty(other, async (text) => void (await expectRefused(text))),
      { numRuns: 80 },
    );
  });

  test("when it is cut short, or any bytes", async () => {
    const whole = JSON.stringify(GOOD);
    const cut = fc.nat(whole.length - 1).map((at) => Buffer.from(whole.slice(0, at)));
    const bytes = fc.oneof(
      cut,
      fc.uint8Array({ maxLength: 100 }).map((some) => Buffer.from([0xff, ...some])),
    );
    await fc.assert(
      fc.asyncProperty(bytes, async (some) => void (await expectRefused(some))),
      { numRuns: 80 },
    );
  });

  test("when it is nested deeper than any stack", async () => {
    await expectRefused("[".repeat(1_000_000));
    await expectRefused(`${"[".repeat(200_000)}${"]".repeat(200_000)}`);
    await expectRefused(`{"signing_keys":${"[".repeat(200_000)}${"]".repeat(200_000)}}`);
  });

  test("when it is a folder, or may not be there", async () => {
    for (const odd of [folder.path, join(folder.path, "none"), join(folder.path, "keys.json", MARK)]) {
      const store = new KeyStore({ path: odd, logger: { info: () => {}, error: () => {} } });
      await expect(store.start()).rejects.toThrow(/cannot be read \(E[A-Z]+\)|is not a regular file/);
      store.stop();
    }
  });
});

test("Running keys stay in force through bad files of all kinds, each of which is told and quoted never", async () => {
  const errors: { readonly problems: readonly string[] }[] = [];
  await put(JSON.stringify(GOOD));
  const store = storeOf(errors);
  await store.start();
  const { ring } = store;
  const told = async (problem: string) => {
    await until("the problem is logged", () => errors.at(-1)?.problems.join("; ") === problem);
  };
  const property = fc.asyncProperty(place, neverGood, async ([[list, index], field], value) => {
    const message = await expectRefused(JSON.stringify(spoiled(list, index, field, value)));
    await told(message);
    await put(MARK);
    await told("not JSON");
    expect(store.ring).toBe(ring);
  });
  await fc.assert(property, { numRuns: 25 });
  for (const secret of SECRETS) expect(JSON.stringify(errors)).not.toContain(secret);
  store.stop();
});
