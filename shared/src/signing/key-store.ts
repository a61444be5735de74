import { readFile, stat } from "node:fs/promises";
import { KeysFile } from "../contract/keys-file.ts";
import { KEYS_FILE_POLL_MS } from "../contract/limits.ts";
import { fieldErrors } from "../intake/field-errors.ts";
import type { Logger } from "../logging.ts";
import { KeyRing, KeysFileError } from "./key-ring.ts";

/** The keys in force: reads the keys file, and reads it again when it changes. Source: protocol, section 4. */
export class KeyStore {
  readonly #path: string;
  readonly #logger: Pick<Logger, "info" | "error">;
  readonly #pollMs: number;
  readonly #listeners: ((ring: KeyRing) => void)[] = [];
  #ring = KeyRing.from({ api_keys: [], signing_keys: [] });
  #version = "";
  #reported = "";
  #running = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { path: string; logger: Pick<Logger, "info" | "error">; pollMs?: number }) {
    this.#path = options.path;
    this.#logger = options.logger;
    this.#pollMs = options.pollMs ?? KEYS_FILE_POLL_MS;
  }

  /** Reads the file. Throws a KeysFileError when it does not validate. */
  async start(): Promise<void> {
    this.#running = true;
    await this.#refresh();
    this.#schedule();
  }

  /** From here on no change is taken over, no listener is called and nothing is logged. */
  stop(): void {
    this.#running = false;
    clearTimeout(this.#timer);
  }

  /** The keys of the last valid reading; none before start. */
  get ring(): KeyRing {
    return this.#ring;
  }

  /** `listener` is called with each new ring after the first. */
  onChange(listener: (ring: KeyRing) => void): void {
    this.#listeners.push(listener);
  }

  /** The next look is due only after the last one ended, so that readings never overlap. */
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
   * Takes over a changed file; true when it did. The version is taken before the text, so that a write in between is
   * seen at the next look; a file at fault is read at each look until it is mended.
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
    this.#logger.info({}, "keys file changed, new keys in force");
    for (const listener of this.#listeners) listener(this.#ring);
  }

  /** Each fault is logged once, not at every look. */
  #report(error: unknown): void {
    if (!(error instanceof KeysFileError)) throw error;
    if (!this.#running || error.message === this.#reported) return;
    this.#reported = error.message;
    this.#logger.error({ faults: error.faults }, "keys file refused, the running keys stay in force");
  }
}

/** Differs whenever the file behind the path does, symbolic links followed: a Kubernetes secret swaps a link. */
async function versionOf(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true }).catch(cannotBeRead);
  return [dev, ino, size, mtimeNs, ctimeNs].join();
}

async function readRing(path: string): Promise<KeyRing> {
  const text = await readFile(path, "utf8").catch(cannotBeRead);
  const parsed = KeysFile.safeParse(parseJson(text));
  if (parsed.success) return KeyRing.from(parsed.data);
  throw new KeysFileError(fieldErrors(parsed.error).map(({ field, message }) => `${field}: ${message}`));
}

/** The parser's own message quotes the text, and with it secrets. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new KeysFileError(["not JSON"]);
  }
}

function cannotBeRead(error: NodeJS.ErrnoException): never {
  throw new KeysFileError([`cannot be read (${error.code})`]);
}
