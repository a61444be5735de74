import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";

const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));

/** A registry on loopback for lines of npm that name packages of others. It has these, as they lie in the repository, and none else. */
export class Registry {
  readonly #names: RegExp;
  readonly #server = createServer(({ url = "" }, answer) => {
    this.#answer(decodeURIComponent(url.slice(1)), answer).catch(() => answer.writeHead(404).end());
  });

  /** @param names what whole names match. */
  constructor(names: RegExp) {
    this.#names = names;
  }

  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(path: string, answer: ServerResponse): Promise<void> {
    const name = path.replace(/\.tgz$/, "");
    if (!this.#names.test(name)) throw new Error("Not a package of this registry.");
    if (name === path) answer.end(await this.#document(name));
    else await pipeline(packed(name), answer);
  }

  async #document(name: string): Promise<string> {
    const manifest = JSON.parse(await readFile(join(MODULES, name, "package.json"), "utf8"));
    const version = { ...manifest, dist: { tarball: `${this.url}/${name}.tgz` } };
    const versions = { [manifest.version]: version };
    return JSON.stringify({ name, "dist-tags": { latest: manifest.version }, versions });
  }
}

function packed(name: string) {
  const line = `tar -C "$1" --transform 's,^\\.,package,' --exclude ./node_modules -cf - . | gzip -1`;
  return spawn("sh", ["-c", line, "sh", join(MODULES, name)], { stdio: ["ignore", "pipe", "inherit"] }).stdout;
}
