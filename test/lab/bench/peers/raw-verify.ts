import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { ED25519_BYTES, privateKeyOfSeed, signEd25519, verifyEd25519 } from "relay-protocol/signing/algorithms.ts";
import { MAX_VERIFICATION_THREADS } from "./peer.ts";

/**
 * `node raw-verify.ts <ms>`: libsodium's verification and nothing else, in a loop on as many threads as a pod verifies on,
 * over texts as long as an envelope's. Prints how many a second, and the µs of CPU of each.
 */

const TEXTS = 128;
const TEXT_BYTES = 300;
const WARM_UP_MS = 500;

if (isMainThread) await measure(Number(process.argv[2]));
else verifyForever(workerData);

async function measure(forMs: number): Promise<void> {
  const threads = Math.min(availableParallelism(), MAX_VERIFICATION_THREADS);
  const counts = new Int32Array(new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT));
  const verified = () => counts.reduce((sum, _, n) => sum + Atomics.load(counts, n), 0);
  for (let n = 0; n < threads; n += 1) new Worker(new URL(import.meta.url), { workerData: counts.subarray(n, n + 1) });
  for (let n = 0; n < threads; n += 1) while (Atomics.load(counts, n) === 0) await delay(1);
  await delay(WARM_UP_MS);
  const before = { verified: verified(), at: performance.now(), cpu: process.cpuUsage() };
  await delay(forMs);
  const { user, system } = process.cpuUsage(before.cpu);
  const count = verified() - before.verified;
  const perSecond = count / ((performance.now() - before.at) / 1000);
  process.stdout.write(`${JSON.stringify({ perSecond, cpuMicros: (user + system) / count })}\n`, () => process.exit(0));
}

function verifyForever(count: Int32Array): void {
  const privateKey = privateKeyOfSeed(randomBytes(ED25519_BYTES.seed));
  const publicKey = privateKey.subarray(ED25519_BYTES.seed);
  const texts = Array.from({ length: TEXTS }, (_, n) => Buffer.from(`${n}`.padStart(TEXT_BYTES, "x")));
  const signatures = texts.map((text) => signEd25519(privateKey, text));
  for (let n = 0; ; n = (n + 1) % TEXTS) {
    if (!verifyEd25519(publicKey, texts[n] as Buffer, signatures[n] as Buffer))
      throw new Error("A good signature was refused.");
    Atomics.add(count, 0, 1);
  }
}
