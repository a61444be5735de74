import { createHash, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import type { Frame } from "./agent.ts";
import { freePort } from "./free-port.ts";

export interface AdminAnswer {
  readonly status: number;
  readonly body: Frame;
}

/** The admin listener of a pod that is yet to be started, and whoever has its key. */
export class AdminClient {
  readonly key: string;
  readonly keyFile: string;
  readonly port: number;
  readonly url: string;

  private constructor(key: string, keyFile: string, port: number) {
    this.key = key;
    this.keyFile = keyFile;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** @param keyFile is written. */
  static async make(keyFile: string, key = randomBytes(32).toString("base64url")): Promise<AdminClient> {
    await writeFile(keyFile, `${key}\n`, { mode: 0o600 });
    return new AdminClient(key, keyFile, await freePort());
  }

  /** Of the pod. */
  get settings(): Record<string, string> {
    return { ADMIN_PORT: String(this.port), RELAY_ADMIN_KEY_FILE: this.keyFile };
  }

  async get(path: string): Promise<AdminAnswer> {
    return await this.#ask(path, {});
  }

  async disconnect(agent: string): Promise<AdminAnswer> {
    const headers = { "content-type": "application/json" };
    return await this.#ask("/admin/disconnect", { method: "POST", headers, body: JSON.stringify({ agent }) });
  }

  async #ask(path: string, init: RequestInit): Promise<AdminAnswer> {
    const headers = { ...init.headers, authorization: `Bearer ${this.key}` };
    const response = await fetch(`${this.url}${path}`, { ...init, headers });
    return { status: response.status, body: await response.json() };
  }
}

/** Texts that must not be found where they do not belong, each under a name that says what it is. */
export class Secrets {
  readonly #spellings: readonly { readonly name: string; readonly texts: readonly string[] }[];

  constructor(secrets: Readonly<Record<string, string>>) {
    this.#spellings = Object.entries(secrets).map(([name, secret]) => ({ name, texts: spellingsOf(secret) }));
  }

  /** Names of the secrets that a text holds, in any usual spelling. */
  in(text: string): string[] {
    return this.#spellings.filter(({ texts }) => texts.some((one) => text.includes(one))).map(({ name }) => name);
  }
}

/** A hash without a key gives a guessed address or key away as well as the text itself. */
function spellingsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const digest = createHash("sha256").update(secret).digest();
  return [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    bytes.toString("base64").replace(/=+$/, ""),
    bytes.toString("base64url"),
    bytes.toString("hex"),
    digest.toString("hex"),
    digest.toString("base64url"),
  ];
}
