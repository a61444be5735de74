import { mkdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Service } from "runtime/lifecycle.ts";

/** How often a use is renewed, and for how long one that is not renewed counts: that of a process that was killed ends by itself. */
const RENEW_MS = 2000;
const USED_FOR_MS = 10_000;

/**
 * Says, for as long as a relay runs on the credentials of a development folder, that it does. By a file's time, since a container
 * that shares the folder knows neither the process nor its network.
 */
export class FolderUse implements Service {
  readonly #file: string;
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> = Promise.resolve();

  constructor(folder: string) {
    this.#file = fileOf(folder);
  }

  async start(): Promise<void> {
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 });
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
  const renewedAt = await stat(fileOf(folder)).then(
    ({ mtimeMs }) => mtimeMs,
    () => Number.NEGATIVE_INFINITY,
  );
  return Math.abs(Date.now() - renewedAt) < USED_FOR_MS;
}

function fileOf(folder: string): string {
  return join(folder, "in-use");
}
