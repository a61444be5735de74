import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { fieldErrors, IN_PLAIN_WORDS } from "relay-protocol/intake/refusal.ts";
import { KeyRing, KeysFileError } from "relay-protocol/signing/key-ring.ts";
import type { FieldError } from "relay-protocol/wire/errors.ts";
import { parseJson } from "relay-protocol/wire/json.ts";
import { type FileError, FileFollower, readRegularFile } from "./files.ts";
import type { Logger } from "./logging.ts";
import { SettingsError } from "./settings.ts";

/** Room for some hundred thousand keys: the file is read and checked on the event loop. */
const MOST_BYTES = 33_554_432;
const MOST_PROBLEMS = 20;

/** The valid keys: reads the keys file, and reads it again when it changes. Source: docs/protocol.md#keys. */
export class KeyStore {
  readonly #logger: Pick<Logger, "info" | "error">;
  readonly #file: FileFollower<KeyRing>;
  readonly #listeners: ((ring: KeyRing, before: KeyRing) => void)[] = [];
  #ring = KeyRing.from(KeysFile.parse({}));

  constructor({
    path,
    logger,
  }: {
    path: string;
    logger: Pick<Logger, "info" | "error">;
  }) {
    this.#logger = logger;
    this.#file = new FileFollower({
      paths: [path],
      read: () => readRing(path),
      loaded: (ring, isFirst) => this.#load(ring, isFirst),
      failed: (error) => this.#report(error),
      recovered: () => logger.info("keys file valid again"),
    });
  }

  /** Reads the file. @throws SettingsError when it cannot be read or is not valid: a service never starts without keys. */
  async start(): Promise<void> {
    await this.#file.start().catch(refuseSetting);
  }

  /** From here on no change takes effect, no listener is called and nothing is logged. */
  stop(): void {
    this.#file.stop();
  }

  /** The keys of the last valid file; no keys before `start`. */
  get ring(): KeyRing {
    return this.#ring;
  }

  /** Whether the file cannot be read, or is invalid, so that the keys of the last valid one go on. */
  get isBehind(): boolean {
    return this.#file.isFailing;
  }

  /** `listener` is called with each new ring after the first, and the one before it. */
  onChange(listener: (ring: KeyRing, before: KeyRing) => void): void {
    this.#listeners.push(listener);
  }

  #load(ring: KeyRing, isFirst: boolean): void {
    const before = this.#ring;
    this.#ring = ring;
    if (isFirst) return;
    this.#logger.info({ in_force: ring.countsAt(Date.now()) }, "keys file changed, new keys loaded");
    for (const listener of this.#listeners) listener(ring, before);
  }

  #report(error: unknown): void {
    if (!(error instanceof KeysFileError)) throw error;
    this.#logger.error({ problems: error.problems }, "keys file invalid, keeping the current keys");
  }
}

async function readRing(path: string): Promise<KeyRing> {
  const { text } = await readRegularFile(path, MOST_BYTES).catch(cannotBeRead);
  const parsed = KeysFile.safeParse(jsonOf(text), IN_PLAIN_WORDS);
  if (parsed.success) return KeyRing.from(parsed.data);
  throw new KeysFileError(problemsOf(fieldErrors(parsed.error)));
}

function problemsOf(errors: readonly FieldError[]): string[] {
  const named = errors.slice(0, MOST_PROBLEMS).map(({ field, message }) => `${field}: ${message}`);
  return named.length < errors.length ? [...named, `and ${errors.length - named.length} more`] : named;
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

function cannotBeRead(error: FileError): never {
  throw new KeysFileError([error.message]);
}
