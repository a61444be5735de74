import { parentPort } from "node:worker_threads";
import { ED25519_BYTES, verify } from "relay-protocol/signing/algorithms.ts";
import type { Checks } from "./signature-verifier.ts";

/** A thread of the verifier: answers each message, in order, with whether each of its signatures is valid. */

parentPort?.on("message", ({ keys, texts, sigs }: Checks) => {
  const bytes = Buffer.from(keys.buffer, keys.byteOffset, keys.byteLength);
  const valid = texts.map((text, index) => {
    const publicKey = bytes.subarray(index * ED25519_BYTES.key, (index + 1) * ED25519_BYTES.key);
    return verify({ alg: "ed25519", publicKey }, text, sigs[index] as string);
  });
  parentPort?.postMessage(valid);
});
