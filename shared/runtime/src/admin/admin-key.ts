import { hash, timingSafeEqual } from "node:crypto";
import { type FileError, FileFollower, readRegularFile } from "../files.ts";
import type { Logger } from "../logging.ts";
import { SettingsError } from "../settings.ts";

const KEY_LINE = /^([\x21-\x7e]{32,})\r?\n?$/;
const HOLDS_ONE_LINE = "must hold one line of at least 32 visible ASCII characters";
const MOST_BYTES = 4096;
const BEARER = /^Bearer +([\x21-\x7e]+)$/i;
/** Rights of others to the file. The service's group may read a file of root: Kubernetes mounts secrets that way. */
const OF_OTHERS = 0o077;
const OF_OTHERS_BESIDE_ROOT = 0o037;

/** The key of the admin listener, as its SHA-256: read at start, and again when its file changes. */
export class AdminKey {
  readonly #file: FileFollower<Buffer>;
  readonly #logger: Pick<Logger, "info" | "error">;
  #digest: Buffer | undefined;

  constructor({ path, logger }: { readonly path: string; readonly logger: Pick<Logger, "info" | "error"> }) {
    this.#logger = logger;
    this.#file = new FileFollower({
      paths: [path],
      read: () => readKey(path),
      loaded: (digest, isFirst) => this.#load(digest, isFirst),
      failed: (error) => this.#report(error),
    });
  }

  /** @throws SettingsError when the file holds no key, or others may read it. */
  async start(): Promise<void> {
    await this.#file.start();
  }

  stop(): void {
    this.#file.stop();
  }

  /** Whether an Authorization field has the key. How long that takes tells nothing of how much of the key is right. */
  isIn(authorization: string): boolean {
    const given = BEARER.exec(authorization)?.[1];
    if (given === undefined || this.#digest === undefined) return false;
    return timingSafeEqual(digestOf(given), this.#digest);
  }

  #load(digest: Buffer, isFirst: boolean): void {
    const isAnother = this.#digest?.equals(digest) === false;
    this.#digest = digest;
    if (!isFirst && isAnother) this.#logger.info("admin key changed");
  }

  #report(error: unknown): void {
    if (!(error instanceof SettingsError)) throw error;
    this.#logger.error({ problem: error.problems[0] }, "admin key invalid, keeping the current one");
  }
}

async function readKey(path: string): Promise<Buffer> {
  const { text, stats } = await readRegularFile(path, MOST_BYTES).catch((error: FileError) => {
    throw unusable(error.message);
  });
  const { mode, uid } = stats;
  if ((mode & (uid === 0 ? OF_OTHERS_BESIDE_ROOT : OF_OTHERS)) !== 0) {
    throw unusable("must be readable by its owner alone (chmod 600), or be of root and readable by its group (0440)");
  }
  const key = KEY_LINE.exec(text)?.[1];
  if (key === undefined) throw unusable(HOLDS_ONE_LINE);
  return digestOf(key);
}

function digestOf(key: string): Buffer {
  return hash("sha256", key, "buffer");
}

/** The message holds nothing of the file. */
function unusable(problem: string): SettingsError {
  return new SettingsError([`RELAY_ADMIN_KEY_FILE ${problem}`]);
}
