import { readFile, stat } from "node:fs/promises";
import { KeysFile } from "protocol/contract/keys-file.ts";
import { fieldErrors, IN_PLAIN_WORDS } from "protocol/intake/field-errors.ts";
import { parseJson } from "protocol/intake/parse-json.ts";
import { KeyRing, KeysFileError } from "protocol/signing/key-ring.ts";
import type { Logger } from "./logging.ts";
import { SettingsError } from "./settings.ts";

/** How often the keys file is looked at; a change is in force within 5 s. */
export const KEYS_FILE_POLL_MS = 1000;

/** The valid keys: reads the keys file, and reads it again when it changes. Source: docs/protocol.md#keys. */
export class KeyStore {
  readonly #path: string;
  readonly #logger: Pick<Logger, "info" | "error">;
  readonly #pollMs: number;
  readonly #listeners: ((ring: KeyRing) => void)[] = [];
  #ring = KeyRing.from(KeysFile.parse({}));
  #version = "";
  #reported = "";
  #running = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { path: string; logger: Pick<Logger, "info" | "error">; pollMs?: number }) {
    this.#path = options.path;
    this.#logger = options.logger;
    this.#pollMs = options.pollMs ?? KEYS_FILE_POLL_MS;
  }

  /** Reads the file. @throws SettingsError when it cannot be read or is not valid: a service never starts without keys. */
  async start(): Promise<void> {
    this.#running = true;
    await this.#refresh().catch(refuseSetting);
    this.#schedule();
  }

  /** From here on no change takes effect, no listener is called and nothing is logged. */
  stop(): void {
    this.#running = false;
    clearTimeout(this.#timer);
  }

  /** The keys of the last valid file; none before `start`. */
  get ring(): KeyRing {
    return this.#ring;
  }

  /** `listener` is called with each new ring after the first. */
  onChange(listener: (ring: KeyRing) => void): void {
    this.#listeners.push(listener);
  }

  /** The next poll is scheduled when the last one has ended, so that polls never overlap. */
  #schedule(): void {
    if (!this.#running) return;
    this.#timer = setTimeout(() => void this.#poll(), this.#pollMs).unref();
  }

  async #poll(): Promise<void> {
    try {
      if (await this.#refresh()) this.#announce();
    } catch (error) {
      this.#report(error);
    } finally {
      this.#schedule();
    }
  }

  /**
   * Loads a changed file; true when it did. The version is read before the text: a write in between then shows at the next
   * poll. An invalid file is read again at each poll until it is fixed.
   */
  async #refresh(): Promise<boolean> {
    const version = await versionOf(this.#path);
    if (version === this.#version) return false;
    const ring = await readRing(this.#path);
    if (!this.#running) return false;
    this.#version = version;
    this.#reported = "";
    this.#ring = ring;
    return true;
  }

  #announce(): void {
    this.#logger.info({ in_force: this.#ring.countsAt(Date.now()) }, "keys file changed, new keys loaded");
    for (const listener of this.#listeners) listener(this.#ring);
  }

  /** An error is logged once, not at every poll. */
  #report(error: unknown): void {
    if (!(error instanceof KeysFileError)) throw error;
    if (!this.#running || error.message === this.#reported) return;
    this.#reported = error.message;
    this.#logger.error({ problems: error.problems }, "keys file invalid, keeping the current keys");
  }
}

/** Changes whenever the file behind the path does. It follows symbolic links: a Kubernetes secret is updated by one. */
async function versionOf(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true }).catch(cannotBeRead);
  return [dev, ino, size, mtimeNs, ctimeNs].join();
}

async function readRing(path: string): Promise<KeyRing> {
  const text = await readFile(path, "utf8").catch(cannotBeRead);
  const parsed = KeysFile.safeParse(jsonOf(text), IN_PLAIN_WORDS);
  if (parsed.success) return KeyRing.from(parsed.data);
  throw new KeysFileError(fieldErrors(parsed.error).map(({ field, message }) => `${field}: ${message}`));
}

/** The parser's message would quote the text, secrets included. */
function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new KeysFileError(["not JSON"]);
  }
}

function refuseSetting(error: unknown): never {
  if (!(error instanceof KeysFileError)) throw error;
  throw new SettingsError(error.problems.map((problem) => `RELAY_KEYS_FILE: ${problem}`));
}

function cannotBeRead(error: NodeJS.ErrnoException): never {
  throw new KeysFileError([`cannot be read (${error.code})`]);
}
