import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import type { Frame } from "../support/agent.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { given } from "../support/use.ts";
import { PythonVerifier } from "./python-verifier.ts";
import { type Issuer, newAgent, newIssuer } from "./receipts.ts";

/** `examples/python/verify.py` for the tests of a file, what it reads, and an agent of each of two issuers. */
export class Verification {
  readonly acme = given(() => newIssuer("acme", "agent://acme.*"));
  readonly globex = given(() => newIssuer("globex", "agent://globex.*"));
  readonly alice = given(() => newAgent(this.acme, "agent://acme.alice"));
  readonly bob = given(() => newAgent(this.globex, "agent://globex.bob"));
  #folder!: Awaited<ReturnType<typeof temporaryFolder>>;
  #verifier!: PythonVerifier;
  #files = 0;

  constructor() {
    beforeAll(async () => {
      this.#folder = await temporaryFolder();
      this.#verifier = new PythonVerifier();
    });
    afterAll(async () => {
      await this.#verifier.stop();
      await this.#folder[Symbol.asyncDispose]();
    });
  }

  /** The path of a file with this content: a text, bytes, or the value of a JSON text. */
  async file(content: object | string): Promise<string> {
    this.#files += 1;
    const path = join(this.#folder.path, String(this.#files));
    const isWritten = typeof content === "string" || content instanceof Uint8Array;
    await writeFile(path, isWritten ? content : JSON.stringify(content));
    return path;
  }

  /** Runs a command; its exit code, and the object that it printed. */
  async run(command: string, checked: object | string, ...options: string[]): Promise<Frame> {
    const { code, stdout } = await this.#verifier.run([command, await this.file(checked), ...options]);
    return { code, ...JSON.parse(stdout) };
  }

  /** What a line of Python prints that has the program as module `verify`. @throws {Error} when it raises Refused. */
  async evaluate(line: string): Promise<string> {
    return await this.#verifier.evaluate(line);
  }

  /** The options that name these issuers. */
  async trusting(...issuers: Issuer[]): Promise<string[]> {
    const paths = await Promise.all(issuers.map(({ record }) => this.file(record)));
    return paths.flatMap((path) => ["--issuer", path]);
  }
}

/** An answer, of its reason the word before the colon. */
export const refusal = ({ code, ok, reason }: Frame) => ({ code, ok, reason: reason?.split(":")[0] });
export const refused = (reason: string) => ({ code: 1, ok: false, reason });

/** The inputs and outputs of RFC 8785's own tests lie beside the repository, where they lie at all. */
export const VECTORS = new URL("../../../shared/vectors/jcs/", import.meta.url);
