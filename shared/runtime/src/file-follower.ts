import { stat } from "node:fs/promises";

/** How often files are looked at; a change is in force within 5 s. */
export const FILE_POLL_MS = 1000;

export interface FileFollowerOptions<Content> {
  /** Read together: a change of any of them is one of all. */
  readonly paths: readonly string[];
  /** Throws what `failed` takes. */
  readonly read: () => Promise<Content>;
  /** They were read: the first time, or since they have changed. If it throws, they are not in use, and are read again. */
  readonly loaded: (content: Content, isFirst: boolean) => void;
  /** Changed files could not be read or used: what was read before stays. Called once for each reason in a row. */
  readonly failed: (error: unknown) => void;
  /** After `failed` they are in use again, changed or not. */
  readonly recovered?: () => void;
  readonly pollMs?: number | undefined;
}

/** Reads files, and reads them again when they change. */
export class FileFollower<Content> {
  readonly #options: FileFollowerOptions<Content>;
  #version = "";
  #running = false;
  /** Why the last look failed. */
  #failure: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FileFollowerOptions<Content>) {
    this.#options = options;
  }

  /** Whether the last look failed, so that what was read before goes on. */
  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** Reads them for the first time. Rejects with what `read` or `loaded` throws. */
  async start(): Promise<void> {
    this.#running = true;
    await this.#look();
    this.#schedule();
  }

  /** From here on nobody is told anything. */
  stop(): void {
    this.#running = false;
    clearTimeout(this.#timer);
  }

  /** The next poll is scheduled when the last one has ended, so that polls never overlap. */
  #schedule(): void {
    if (!this.#running) return;
    this.#timer = setTimeout(() => void this.#poll(), this.#options.pollMs ?? FILE_POLL_MS).unref();
  }

  async #poll(): Promise<void> {
    try {
      await this.#look();
    } catch (error) {
      this.#report(error);
    } finally {
      this.#schedule();
    }
  }

  #recover(): void {
    if (!this.#running || this.#failure === undefined) return;
    this.#failure = undefined;
    this.#options.recovered?.();
  }

  #report(error: unknown): void {
    const failure = String(error);
    if (!this.#running || failure === this.#failure) return;
    this.#failure = failure;
    this.#options.failed(error);
  }

  /**
   * Files that change while they are read are read again: their content may be half old. Files that cannot be read or used are
   * read again at each poll.
   */
  async #look(): Promise<void> {
    const { paths, read, loaded } = this.#options;
    const present = async () => (await Promise.all(paths.map(versionOf))).join(" ");
    const version = await present();
    if (version === this.#version) return this.#recover();
    const content = await read();
    if ((await present()) !== version) return await this.#look();
    if (!this.#running) return;
    loaded(content, this.#version === "");
    this.#version = version;
    this.#recover();
  }
}

/**
 * Changes whenever the file behind the path does. It follows symbolic links: a Kubernetes secret is updated by one. Of a file that is not
 * there, too: the read says why.
 */
async function versionOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  if (found === undefined) return `missing ${performance.now()}`;
  const { dev, ino, size, mtimeNs, ctimeNs } = found;
  return [dev, ino, size, mtimeNs, ctimeNs].join();
}
