import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { type VerifyKey, verify } from "relay-protocol/signing/algorithms.ts";
import type { Service } from "../lifecycle.ts";

/** A message to a thread: public keys of 32 bytes, concatenated, and as many texts and signatures. */
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
  /** Resolves when the thread runs, or was terminated before it did. */
  readonly started: Promise<void>;
  /** Sent and not answered, in the order in which the answers come. */
  readonly pending: Check[][];
}

/** One thread per core, up to as many as one event loop keeps busy: an envelope costs it a third of a signature. */
const MAX_THREADS = 4;
/** For fewer checks each, waking another thread costs more than it saves. */
const MIN_CHECKS = 16;

/**
 * Verifies the signatures of envelopes: HMAC at once, Ed25519 on worker threads, among which the checks of one turn of the
 * event loop are divided. A thread that fails ends the process: its checks would never be answered.
 */
export class SignatureVerifier implements Service {
  readonly #threads: Thread[] = [];
  #waiting: Check[] = [];
  /** True when the waiting checks are sent at the end of this turn of the event loop. */
  #isDue = false;

  /** Resolves when every thread is ready. */
  async start(): Promise<void> {
    const count = Math.min(availableParallelism(), MAX_THREADS);
    for (let n = 0; n < count; n += 1) this.#threads.push(startThread());
    await Promise.all(this.#threads.map(({ started }) => started));
  }

  /** Pending checks are never answered. */
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
    this.#waiting.push({ publicKey: key.publicKey, text, sig, done });
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => this.#dispatch());
  }

  /** Divides the waiting checks among as many threads as pay off, those with the shortest backlog first. */
  #dispatch(): void {
    this.#isDue = false;
    const checks = this.#waiting;
    this.#waiting = [];
    const threads = this.#threads.toSorted((a, b) => backlogOf(a) - backlogOf(b));
    const used = Math.min(Math.max(Math.floor(checks.length / MIN_CHECKS), 1), threads.length);
    const share = Math.ceil(checks.length / used);
    for (const thread of threads) {
      const part = checks.splice(0, share);
      if (part.length > 0) send(thread, part);
    }
  }
}

function startThread(): Thread {
  const worker = new Worker(new URL("./verification-thread.ts", import.meta.url));
  // Without a listener for "error", an error of the thread ends the process.
  const started = new Promise<void>((resolve) => {
    worker.once("online", resolve).once("exit", () => resolve());
  });
  const thread: Thread = { worker, started, pending: [] };
  worker.on("message", (answers: readonly boolean[]) => {
    thread.pending.shift()?.forEach(({ done }, index) => {
      done(answers[index] === true);
    });
  });
  return thread;
}

function send({ worker, pending }: Thread, checks: Check[]): void {
  const message: Checks = {
    // In memory of their own: of a piece of Node's pool, a message carries all 64 KiB.
    keys: new Uint8Array(Buffer.concat(checks.map(({ publicKey }) => publicKey))),
    texts: checks.map(({ text }) => text),
    sigs: checks.map(({ sig }) => sig),
  };
  pending.push(checks);
  worker.postMessage(message);
}

function backlogOf({ pending }: Thread): number {
  return pending.reduce((sum, checks) => sum + checks.length, 0);
}
