import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { TLSSocket } from "node:tls";

/** How often each end says that it is there. */
const ALIVE_MS = 3000;
/** Silence of three of these ends the channel; so does a line that is older. */
const LATE_MS = 3 * ALIVE_MS;
/** Those that only say that their end is there have no text. */
const LINE = /^(\d{1,15})(?: (.+))?$/;

/**
 * Lines of text over a channel, each with the time at which it was written. A program without the key can pass the channel on; what
 * it cannot read, change, leave out or repeat it could keep back for as long as it likes. So either end speaks every few seconds,
 * and takes nothing that is older.
 */
export class LiveLines {
  readonly #channel: TLSSocket;
  readonly #texts: Readable;
  #heardAt = now();
  #isStopped = false;
  #isLate = false;

  constructor(channel: TLSSocket) {
    this.#channel = channel;
    this.#texts = new Readable({ objectMode: true, read: () => void channel.resume() });
    const lines = createInterface({ input: channel });
    lines
      .on("line", (line) => this.#take(line))
      // The socket of one that was killed fails to be read.
      .on("error", () => {})
      .once("close", () => this.stop());
    const alive = setInterval(() => this.#stayAlive(), ALIVE_MS).unref();
    channel.once("close", () => {
      clearInterval(alive);
      lines.close();
    });
  }

  /** What the other end writes. Ends with the channel, and before the first line that is late. */
  get texts(): AsyncIterable<string> {
    return this.#texts;
  }

  /** Whether a late line was the last. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** @returns false where the other end is slow: its channel emits `drain`. */
  write(text: string): boolean {
    return this.#channel.write(`${now()} ${text}\n`);
  }

  /** Takes no further line. */
  stop(): void {
    if (!this.#isStopped) this.#texts.push(null);
    this.#isStopped = true;
  }

  #take(line: string): void {
    if (this.#isStopped) return;
    const [, at, text] = LINE.exec(line) ?? [];
    this.#heardAt = now();
    this.#isLate = at === undefined || Math.abs(this.#heardAt - Number(at)) > LATE_MS;
    if (this.#isLate) this.stop();
    else if (text !== undefined && !this.#texts.push(text)) this.#channel.pause();
  }

  /** An end that has more than it answers hears nothing meanwhile. */
  #stayAlive(): void {
    if (now() - this.#heardAt > LATE_MS && !this.#channel.isPaused()) this.#channel.destroy();
    else this.#channel.write(`${now()}\n`);
  }
}

/** Monotonic ms, the same for all processes of a machine. */
function now(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
