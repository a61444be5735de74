import { expect, test } from "@jest/globals";
import sodium from "sodium-native";
import standIn from "../../deploy/packages/testing/sodium.ts";
import { fc } from "../support/fast-check.ts";

/** Order of the base point. Source: RFC 8032, section 5.1. */
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const NEUTRAL = Buffer.from(`01${"00".repeat(31)}`, "hex");

const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
const messages = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));

/** What libraries make of a seed and a message. */
function signedBy(library: typeof standIn, seed: Buffer, message: Buffer) {
  const [publicKey, privateKey, signature] = [Buffer.alloc(32), Buffer.alloc(64), Buffer.alloc(64)];
  library.crypto_sign_seed_keypair(publicKey, privateKey, seed);
  library.crypto_sign_detached(signature, message, privateKey);
  return { publicKey, privateKey, signature };
}

const verdicts = (signature: Buffer, message: Buffer, publicKey: Buffer) =>
  [sodium, standIn].map((library) => library.crypto_sign_verify_detached(signature, message, publicKey));

/** The same signature with its scalar raised by the order. */
function malleated(signature: Buffer): Buffer {
  const scalar = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString("hex")}`) + ORDER;
  return Buffer.concat([
    signature.subarray(0, 32),
    Buffer.from(scalar.toString(16).padStart(64, "0"), "hex").reverse(),
  ]);
}

test("What stands in for libsodium in the package for tests has its lengths, keys and signatures", () => {
  for (const [name, value] of Object.entries(standIn)) {
    if (typeof value === "number") expect([name, value]).toEqual([name, sodium[name as keyof typeof sodium]]);
  }
  fc.assert(
    fc.property(seeds, messages, (seed, message) => {
      const theirs = signedBy(sodium, seed, message);
      expect(signedBy(standIn, seed, message)).toEqual(theirs);
      expect(verdicts(theirs.signature, message, theirs.publicKey)).toEqual([true, true]);
    }),
  );
});

test("It refuses what libsodium refuses: changed, malleated, of small order", () => {
  fc.assert(
    fc.property(seeds, messages, fc.nat(511), (seed, message, bit) => {
      const { publicKey, signature } = signedBy(sodium, seed, message);
      const changed = Buffer.from(signature);
      changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(verdicts(changed, message, publicKey)).toEqual([false, false]);
      expect(verdicts(malleated(signature), message, publicKey)).toEqual([false, false]);
    }),
  );
  // Under the neutral point as key and commitment, the scalar 0 would sign every message.
  const forged = Buffer.concat([NEUTRAL, Buffer.alloc(32)]);
  expect(verdicts(forged, Buffer.from("any"), NEUTRAL)).toEqual([false, false]);
});
