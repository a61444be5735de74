import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Logger } from "./logging.ts";
import { SettingsError } from "./settings.ts";

/** The principal of an event: a record of the keys file, with the labels of `relay_key_refusals_total`. */
interface PrincipalName {
  /** `key`, `issuer` or `api`. */
  readonly kind: string;
  readonly id: string;
}

/**
 * What happened, in ids and codes of this relay: no contents, no addresses, no secrets, no digests of them.
 * Source: docs/operations.md#audit-log.
 */
type AuditEvent =
  | ({
      readonly event: "registered";
      readonly agent: string;
      readonly key_id: string;
      readonly epoch: number;
    } & PrincipalName)
  | { readonly event: "taken_over"; readonly agent: string; readonly epoch: number }
  | { readonly event: "released"; readonly agent: string; readonly reason: string }
  | ({ readonly event: "refused"; readonly code: string; readonly times: number } & PrincipalName)
  | {
      readonly event: "keys_changed";
      readonly added: readonly PrincipalName[];
      readonly removed: readonly PrincipalName[];
      readonly changed: readonly PrincipalName[];
    }
  | { readonly event: "window_entered"; readonly window: string; readonly deploy: string }
  | ({ readonly event: "admin_read"; readonly read: string } & Partial<PrincipalName>)
  | { readonly event: "admin_disconnect"; readonly agent: string; readonly outcome: string }
  | { readonly event: "admin_refused"; readonly times: number };

/** An event that is written at most once per interval, with the number of times that it happened. */
type Gathered = Extract<AuditEvent, { readonly times: number }>;

/**
 * Refusals of one key by one code are one line per interval, and so are those of the admin listener: a flood does not
 * fill the disk.
 */
const REFUSALS_EVERY_MS = 10_000;
const TOLD_EVERY_MS = 60_000;
const MODE = 0o600;

/** JSON lines in a file, appended in the order in which things happened; nothing without a file. */
export class AuditLog {
  readonly #file: LineFile | undefined;
  readonly #service: string;
  readonly #logger: Pick<Logger, "error">;
  readonly #refusals = new Map<string, Gathered>();
  #started: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #linesLost = 0;
  /** When the log was told last that lines were lost: monotonic ms. */
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(options: { readonly file: string | undefined; readonly service: string; readonly logger: Logger }) {
    const { file: path } = options;
    const lost = (lines: number, error?: unknown) => this.#report(lines, error);
    this.#file = path === undefined ? undefined : new LineFile({ path, mode: MODE, lost });
    this.#service = options.service;
    this.#logger = options.logger;
  }

  /** @throws SettingsError when the file cannot be written: nobody finds out afterwards that nothing was kept. */
  start(): Promise<void> {
    this.#started ??= this.#start();
    return this.#started;
  }

  async #start(): Promise<void> {
    if (this.#file === undefined) return;
    await this.#file.open().catch(refuseSetting);
    this.#timer = setInterval(() => this.#writeRefusals(), REFUSALS_EVERY_MS);
  }

  /** Resolves when every line is in the file, or could not be written. */
  async stop(): Promise<void> {
    // A file that is about to be opened can be closed only once it is; a start that fails says so to its caller.
    await this.#started?.catch(() => {});
    clearInterval(this.#timer);
    this.#writeRefusals();
    await this.#file?.close();
  }

  /** Whether anything is kept. */
  get isKept(): boolean {
    return this.#file !== undefined;
  }

  /** Lines that could not be written. */
  get linesLost(): number {
    return this.#linesLost;
  }

  write(event: AuditEvent): void {
    this.#file?.write(JSON.stringify({ time: new Date().toISOString(), service: this.#service, ...event }));
  }

  /** A request that was proven to come from the holder of a key, or an agent of an issuer, was refused. */
  refused(principal: PrincipalName, code: string): void {
    this.#gather(`${principal.kind} ${principal.id} ${code}`, { event: "refused", ...principal, code, times: 1 });
  }

  /** Somebody asked the admin listener without its key. */
  adminRefused(): void {
    this.#gather("admin", { event: "admin_refused", times: 1 });
  }

  #gather(name: string, first: Gathered): void {
    if (!this.isKept) return;
    const times = (this.#refusals.get(name)?.times ?? 0) + 1;
    this.#refusals.set(name, { ...first, times });
  }

  #writeRefusals(): void {
    for (const refusal of this.#refusals.values()) this.write(refusal);
    this.#refusals.clear();
  }

  #report(lines: number, err: unknown): void {
    this.#linesLost += lines;
    if (performance.now() - this.#toldAt < TOLD_EVERY_MS) return;
    this.#toldAt = performance.now();
    this.#logger.error({ err, lines_lost: this.#linesLost }, "the audit log cannot be written");
  }
}

function refuseSetting(error: NodeJS.ErrnoException): never {
  throw new SettingsError([`RELAY_AUDIT_FILE cannot be written (${error.code})`]);
}

/** A pipe that nobody reads, or that is full, is an error at once: no start and no stop waits for it. */
const { O_APPEND, O_CREAT, O_WRONLY, O_NONBLOCK } = constants;
const FLAGS = O_APPEND | O_CREAT | O_WRONLY | O_NONBLOCK;
/** Lines that wait for the current write. Further lines are lost. */
const MOST_WAITING_BYTES = 4_194_304;

interface LineFileOptions {
  readonly path: string;
  /** Of a file that is made. */
  readonly mode: number;
  /** Some lines could not be written, and are not tried again. `error` is undefined where too many waited. */
  readonly lost: (lines: number, error?: unknown) => void;
}

/**
 * Appends lines to a file, in order, one write at a time. Lines that come during a write go together in the next. The
 * caller never waits. A file that fails, as on a full disk, holds up neither the process nor its end: pino's
 * destination would keep every line, and try for ever at exit.
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

  /** Rejects with the error of the system if the file cannot be opened. */
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

  /** Resolves when every line is in the file or lost. */
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
