import { constants, type Stats } from "node:fs";
import { open, stat } from "node:fs/promises";

/** What is wrong with a file that is not decoded, after the name of the file. */
const NOT_UTF_8 = "is not UTF-8; write it as UTF-8, in PowerShell with Set-Content -Encoding utf8";

/**
 * Decodes the text of a file, or of standard input, and takes a byte order mark of UTF-8 off. Undefined for UTF-16 and
 * for any bytes that are not UTF-8.
 */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (isUtf16(bytes)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Of UTF-16: a byte order mark, as `>` of Windows PowerShell writes, or an ASCII character first, as in JSON. */
function isUtf16(bytes: Uint8Array): boolean {
  const [first, second] = bytes;
  const isMarked = (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
  return isMarked || (second !== undefined && (first === 0) !== (second === 0));
}

/**
 * The text of a file that a command reads, or of standard input.
 * @param origin names the source at the beginning of a sentence.
 * @throws {Error} for bytes that are not UTF-8; it says what to do.
 */
export function textIn(bytes: Uint8Array, origin: string): string {
  const text = decodeText(bytes);
  if (text !== undefined) return text;
  throw new Error(`${origin} ${NOT_UTF_8}.`);
}

/** A file cannot be read. The message goes on a sentence that begins with its name, and holds nothing of its text. */
export class FileError extends Error {}

interface RegularFile {
  readonly text: string;
  readonly stats: Stats;
}

/**
 * Reads a file that the operator names, at start or while a service runs. A pipe is refused: a thread would wait for
 * it, and no stop ends that thread. A far too large file would take memory and the event loop.
 * @throws {FileError} when the file cannot be read, is not a regular file, is larger than `mostBytes`, or is not UTF-8.
 */
export async function readRegularFile(path: string, mostBytes: number): Promise<RegularFile> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(unreadable);
  const stats = await file.stat().catch(unreadable);
  if (!stats.isFile()) throw new FileError("is not a regular file");
  if (stats.size > mostBytes) throw new FileError(`is larger than ${mostBytes} bytes`);
  const text = decodeText(await file.readFile().catch(unreadable));
  if (text === undefined) throw new FileError(NOT_UTF_8);
  return { text, stats };
}

function unreadable({ code }: NodeJS.ErrnoException): never {
  throw new FileError(`cannot be read (${code})`);
}

/** How often files are looked at; a change is in force within 5 s. */
export const FILE_TIMES: { readonly pollMs: number } = { pollMs: 1000 };

interface FileFollowerOptions<Content> {
  /** Read together: a change of any of them is one of all. */
  readonly paths: readonly string[];
  /** Throws what `failed` takes. */
  readonly read: () => Promise<Content>;
  /** They were read: the first time, or since they have changed. If it throws, they are not in use, and are read again. */
  readonly loaded: (content: Content, isFirst: boolean) => void;
  /** Changed files cannot be read or used: the content read before stays. Called once for each reason in a row. */
  readonly failed: (error: unknown) => void;
  /** After `failed` they are in use again, changed or not. */
  readonly recovered?: () => void;
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

  /** Whether the last look failed, so that the content read before stays in use. */
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
    this.#timer = setTimeout(() => void this.#poll(), FILE_TIMES.pollMs).unref();
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
