import { generateKeyPairSync, sign, verify } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

/**
 * `node raw-verify.ts <ms>`: Ed25519 on the thread pool and nothing else, over texts as long as an envelope's. Prints
 * how many a second, and the µs of CPU of each.
 */

const AT_ONCE = 128;
const WARM_UP_MS = 500;

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const texts = Array.from({ length: AT_ONCE }, (_, n) => Buffer.from(`${n}`.padStart(300, "x")));
const signatures = texts.map((text) => sign(null, text, privateKey));
let verified = 0;
let running = true;

function next(n: number): void {
  verify(null, texts[n] as Buffer, publicKey, signatures[n] as Buffer, (error, valid) => {
    if (error !== null || !valid) throw error ?? new Error("A good signature was refused.");
    verified += 1;
    if (running) next(n);
  });
}

for (let n = 0; n < AT_ONCE; n += 1) next(n);
await delay(WARM_UP_MS);
const before = { verified, at: performance.now(), cpu: process.cpuUsage() };
await delay(Number(process.argv[2]));
const { user, system } = process.cpuUsage(before.cpu);
const count = verified - before.verified;
running = false;
const perSecond = count / ((performance.now() - before.at) / 1000);
process.stdout.write(`${JSON.stringify({ perSecond, cpuMicros: (user + system) / count })}\n`);
