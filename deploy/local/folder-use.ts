import { randomUUID } from "node:crypto";
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Service } from "relay-runtime/lifecycle.ts";

/** How often a use is renewed, and for how long one that is not renewed counts: that of a process that was killed ends by itself. */
const RENEW_MS = 2000;
const USED_FOR_MS = 10_000;
const MARK = "in-use-";

/**
 * Says, for as long as a relay runs on the credentials of a development folder, that it does. By the time of a file of its own, since a
 * container that shares the folder knows neither the process nor its network.
 */
export class FolderUse implements Service {
  readonly #folder: string;
  readonly #file: string;
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> = Promise.resolve();

  constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, `${MARK}${randomUUID()}`);
  }

  async start(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const mark of await marksIn(this.#folder)) if (!(await isRenewed(mark))) await rm(mark, { force: true });
    await this.#renew();
    this.#timer = setInterval(() => {
      this.#renewing = this.#renew().catch(() => {});
    }, RENEW_MS);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing;
    await rm(this.#file, { force: true });
  }

  async #renew(): Promise<void> {
    await writeFile(this.#file, String(process.pid), { mode: 0o600 });
  }
}

/** Whether a relay runs on the credentials of the folder. */
export async function isInUse(folder: string): Promise<boolean> {
  const uses = await Promise.all((await marksIn(folder)).map(isRenewed));
  return uses.includes(true);
}

/** False, too, for one that has just gone. */
async function isRenewed(mark: string): Promise<boolean> {
  const renewedAt = await stat(mark).then(
    ({ mtimeMs }) => mtimeMs,
    () => Number.NEGATIVE_INFINITY,
  );
  return Math.abs(Date.now() - renewedAt) < USED_FOR_MS;
}

/** Of each relay that runs there, and of those that were killed. */
async function marksIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.filter((name) => name.startsWith(MARK)).map((name) => join(folder, name));
}
