import { lstat } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import type { ControlPlace } from "./place.ts";
import { madeSocketFolder, UNSHARED } from "./socket-folder.ts";
import { newSocketPath } from "./socket-path.ts";
import { removeStaleSockets } from "./stale-sockets.ts";

const LOOK_MS = 2000;

/** A socket of this process in the folder, which it makes anew when somebody has removed or replaced its file. */
export class ControlSocket {
  readonly #place: ControlPlace;
  readonly #meet: (client: Socket) => void;
  #server: Server | undefined;
  #look: ReturnType<typeof setInterval> | undefined;
  #isStopped = false;

  /** @param meet called with each client. */
  constructor(place: ControlPlace, meet: (client: Socket) => void) {
    this.#place = place;
    this.#meet = meet;
  }

  /** @returns its path; undefined when there can be none, which is warned of. */
  async start(): Promise<string | undefined> {
    const folder = await madeSocketFolder(this.#place);
    if (folder !== undefined) await removeStaleSockets(folder);
    return await this.#open(folder);
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#look);
    this.#server?.close();
  }

  async #open(folder: string | undefined): Promise<string | undefined> {
    if (folder === undefined || this.#isStopped) return undefined;
    const { signing, websocketUrl } = this.#place;
    const path = newSocketPath(folder, signing.agent, websocketUrl);
    return (await this.#listen(path, folder)) ? path : undefined;
  }

  /** @returns whether it listens there. */
  async #listen(path: string, folder: string): Promise<boolean> {
    if (this.#isStopped) return false;
    const server = createServer(this.#meet);
    this.#server = server;
    try {
      await new Promise<void>((done, failed) => server.once("error", failed).once("close", done).listen(path, done));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const text = `No control socket can be opened in ${folder} (${code}). ${UNSHARED}`;
      this.#place.warn(
        text,
        "The folder has to be on a file system that takes sockets, and this user has to be able to write it.",
      );
      return false;
    }
    server.on("error", () => {});
    const file = await fileAt(path);
    if (this.#isStopped) return false;
    // It may be gone already.
    const isThere = async () => file !== undefined && (await fileAt(path)) === file;
    this.#look = setInterval(async () => (await isThere()) || this.#again(server), LOOK_MS).unref();
    return true;
  }

  async #again(server: Server): Promise<void> {
    if (this.#isStopped || server !== this.#server) return;
    this.#server = undefined;
    clearInterval(this.#look);
    server.close();
    // What others left is not looked at again: whoever removes the file chooses how often this happens.
    await this.#open(await madeSocketFolder(this.#place));
  }
}

/** What tells one file from another at its path: the number alone may be given anew. */
async function fileAt(path: string): Promise<string | undefined> {
  const found = await lstat(path, { bigint: true }).catch(() => undefined);
  return found && `${found.dev} ${found.ino} ${found.birthtimeNs}`;
}
