import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** A pipe that nobody reads, or that is full, is an error at once: no start and no stop waits for it. */
const { O_APPEND, O_CREAT, O_WRONLY, O_NONBLOCK } = constants;
const FLAGS = O_APPEND | O_CREAT | O_WRONLY | O_NONBLOCK;
/** What waits for a write that is under way; what is more is lost. */
const MOST_WAITING_BYTES = 4_194_304;

export interface LineFileOptions {
  readonly path: string;
  /** Of a file that is made. */
  readonly mode: number;
  /** Some lines could not be written, and are not tried again. `error` is undefined where too many waited. */
  readonly lost: (lines: number, error?: unknown) => void;
}

/**
 * Lines that are appended to a file, in order, one write at a time, so that what comes meanwhile goes together. Whoever writes never
 * waits, and a file that fails (a full disk) holds up neither the process nor its end: pino's destination keeps every line then,
 * and tries for ever at the exit.
 */
export class LineFile {
  readonly #options: LineFileOptions;
  #file: FileHandle | undefined;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  /** Part of a line may have been written. */
  #isTorn = false;

  constructor(options: LineFileOptions) {
    this.#options = options;
  }

  /** Rejects with what the system says where the file cannot be opened. */
  async open(): Promise<void> {
    this.#file = await open(this.#options.path, FLAGS, this.#options.mode);
  }

  /** @param line without its end. Of a file that is not open nothing comes. */
  write(line: string): void {
    const file = this.#file;
    if (file === undefined) return;
    const bytes = Buffer.byteLength(line) + 1;
    if (this.#waitingBytes + bytes > MOST_WAITING_BYTES) {
      this.#options.lost(1);
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += bytes;
    this.#writing ??= this.#writeAll(file);
  }

  /** What was written before is in the file then, or lost. */
  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await this.#writing;
    await file?.close();
  }

  async #writeAll(file: FileHandle): Promise<void> {
    // Lines of one turn go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      this.#waitingBytes = 0;
      await this.#append(file, lines);
    }
    this.#writing = undefined;
  }

  async #append(file: FileHandle, lines: readonly string[]): Promise<void> {
    try {
      await file.appendFile(`${this.#isTorn ? "\n" : ""}${lines.join("\n")}\n`);
      this.#isTorn = false;
    } catch (error) {
      this.#isTorn = true;
      this.#options.lost(lines.length, error);
    }
  }
}
