import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Service } from "../lifecycle.ts";
import { type VerifyKey, verify } from "./algorithms.ts";

/** What a thread is given: public keys of 32 bytes, one behind the other, and as many texts and signatures. */
export interface Checks {
  readonly keys: Uint8Array;
  readonly texts: readonly string[];
  readonly sigs: readonly string[];
}

interface Check {
  readonly publicKey: Buffer;
  readonly text: string;
  readonly sig: string;
  readonly done: (valid: boolean) => void;
}

interface Thread {
  readonly worker: Worker;
  /** Resolves when it runs, or was ended before it did. */
  readonly started: Promise<void>;
  /** Handed over and not answered, in the order in which the answers come. */
  readonly underWay: Check[][];
}

/** One thread for each core, up to as many as an event loop can keep busy: an envelope costs it a third of its signature. */
const MOST_THREADS = 4;
/** Fewer would not pay for waking another thread. */
const LEAST_CHECKS = 16;

/**
 * Checks the signatures of envelopes: HMAC at once, Ed25519 on threads of its own, what one turn of the event loop brings
 * in shared among them. A thread that fails ends the process: without it nothing could be taken in.
 */
export class Verifier implements Service {
  readonly #threads: Thread[] = [];
  #waiting: Check[] = [];

  /** Resolves when every thread is ready. */
  async start(): Promise<void> {
    const count = Math.min(availableParallelism(), MOST_THREADS);
    for (let n = 0; n < count; n += 1) this.#threads.push(startThread());
    await Promise.all(this.#threads.map(({ started }) => started));
  }

  /** Checks that are under way have no answer any more. */
  async stop(): Promise<void> {
    await Promise.all(this.#threads.splice(0).map(({ worker }) => worker.terminate()));
  }

  /**
   * Calls `done` once with whether `sig` (base64url) signs the UTF-8 bytes of `text`: before this returns for HMAC, later
   * for Ed25519, where answers may overtake each other. Never throws.
   */
  verify(key: VerifyKey, text: string, sig: string, done: (valid: boolean) => void): void {
    if (key.alg === "hmac-sha256") {
      done(verify(key, text, sig));
      return;
    }
    if (this.#waiting.length === 0) setImmediate(() => this.#handOver());
    this.#waiting.push({ publicKey: key.publicKey, text, sig, done });
  }

  /** Shares what waits among as many threads as it is worth, those with the least to do. */
  #handOver(): void {
    const checks = this.#waiting;
    this.#waiting = [];
    const threads = this.#threads.toSorted((a, b) => backlogOf(a) - backlogOf(b));
    const share = Math.max(Math.ceil(checks.length / threads.length), LEAST_CHECKS);
    for (const thread of threads) {
      const part = checks.splice(0, share);
      if (part.length > 0) giveTo(thread, part);
    }
  }
}

function startThread(): Thread {
  const worker = new Worker(new URL("./verification-thread.ts", import.meta.url));
  // No listener for "error": what nobody catches ends the process.
  const started = new Promise<void>((resolve) => {
    worker.once("online", resolve).once("exit", () => resolve());
  });
  const thread: Thread = { worker, started, underWay: [] };
  worker.on("message", (answers: readonly boolean[]) => {
    thread.underWay.shift()?.forEach(({ done }, index) => {
      done(answers[index] === true);
    });
  });
  return thread;
}

function giveTo({ worker, underWay }: Thread, checks: Check[]): void {
  const message: Checks = {
    keys: Buffer.concat(checks.map(({ publicKey }) => publicKey)),
    texts: checks.map(({ text }) => text),
    sigs: checks.map(({ sig }) => sig),
  };
  underWay.push(checks);
  worker.postMessage(message);
}

function backlogOf({ underWay }: Thread): number {
  return underWay.reduce((sum, checks) => sum + checks.length, 0);
}
