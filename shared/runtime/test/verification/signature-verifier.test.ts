import { execFile } from "node:child_process";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import {
  ED25519_BYTES,
  importPublicKey,
  privateKeyOfSeed,
  publicKeyText,
  type SigningKey,
  sign,
  type VerifyKey,
} from "relay-protocol/signing/algorithms.ts";
import { HMAC } from "../../../protocol/test/intake/support.ts";
import { type Checks, SignatureVerifier } from "../../src/verification/signature-verifier.ts";

const PAIRS = [1, 2, 3].map((seed) => {
  const privateKey = privateKeyOfSeed(Buffer.alloc(32, seed));
  const signing: SigningKey = { alg: "ed25519", privateKey };
  const checking: VerifyKey = { alg: "ed25519", publicKey: importPublicKey(publicKeyText(privateKey)) };
  return { signing, checking };
});
const [PAIR] = PAIRS as [(typeof PAIRS)[number]];

let verifier: SignatureVerifier;

beforeEach(async () => {
  verifier = new SignatureVerifier();
  await verifier.start();
});
afterEach(() => verifier.stop());

const answerTo = (key: VerifyKey, text: string, sig: string) =>
  new Promise<boolean>((resolve) => verifier.verify(key, text, sig, resolve));

test("HMAC is answered before verify returns, whatever else is under way", () => {
  const answers: string[] = [];
  verifier.verify(PAIR.checking, "text", sign(PAIR.signing, "text"), () => answers.push("ed25519"));
  verifier.verify(HMAC as VerifyKey, "text", sign(HMAC, "text"), (valid) => answers.push(`hmac ${valid}`));
  expect(answers).toEqual(["hmac true"]);
});

test("each of many signatures gets the answer to its own key, text and spelling, however they are shared out", async () => {
  const texts = ["", "plain", "Grüße 😂 ".repeat(1000)];
  const asked = Array.from({ length: 500 }, (_, n) => {
    const { signing, checking } = PAIRS[n % 3] as (typeof PAIRS)[number];
    const text = `${texts[n % 4] ?? "x"}${n}`;
    const sig = sign(signing, n % 5 === 0 ? `${text} ` : text);
    return { checking, text, sig: n % 7 === 0 ? `${sig}=` : sig, valid: n % 5 !== 0 && n % 7 !== 0 };
  });
  const answers = await Promise.all(asked.map(({ checking, text, sig }) => answerTo(checking, text, sig)));
  expect(answers).toEqual(asked.map(({ valid }) => valid));
});

test("a thread is sent no more memory than its keys take", async () => {
  const sent = jest.spyOn(Worker.prototype, "postMessage");
  await answerTo(PAIR.checking, "text", sign(PAIR.signing, "text"));
  const sizes = sent.mock.calls.map(([message]) => (message as Checks).keys.buffer.byteLength);
  sent.mockRestore();
  expect(sizes).toEqual([ED25519_BYTES.key]);
});

test("one thread is sent what is too little for two", async () => {
  const sent = jest.spyOn(Worker.prototype, "postMessage");
  const sig = sign(PAIR.signing, "text");
  const answers = await Promise.all(Array.from({ length: 31 }, () => answerTo(PAIR.checking, "text", sig)));
  const sizes = sent.mock.calls.map(([message]) => (message as Checks).texts.length);
  sent.mockRestore();
  expect([sizes, new Set(answers)]).toEqual([[31], new Set([true])]);
});

test("the event loop goes on while signatures are checked", async () => {
  const sig = sign(PAIR.signing, "text");
  let open = 400;
  for (let n = 0; n < 400; n += 1) verifier.verify(PAIR.checking, "text", sig, () => (open -= 1));
  let turns = 0;
  for (; open > 0; turns += 1) await turn();
  expect(turns).toBeGreaterThan(20);
});

test("a stop ends its threads, also when it comes before they are ready", async () => {
  const early = new SignatureVerifier();
  const started = early.start();
  await Promise.all([early.stop(), started]);
});

test("a thread that fails ends the process: nothing could be taken in without it", async () => {
  const program = `
    const { SignatureVerifier } = await import(${JSON.stringify(new URL("../../src/verification/signature-verifier.ts", import.meta.url).href)});
    const verifier = new SignatureVerifier();
    await verifier.start();
    verifier.verify({ alg: "ed25519", publicKey: Buffer.alloc(31) }, "text", "A".repeat(86), () => {});`;
  const run = promisify(execFile)(process.execPath, ["--eval", program]);
  await expect(run).rejects.toMatchObject({ code: 1 });
});
