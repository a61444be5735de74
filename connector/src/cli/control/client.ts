import { createInterface } from "node:readline";
import type { TLSSocket } from "node:tls";
import { membersOf } from "../../frames.ts";
import { parseJson } from "../../parse-json.ts";
import type { JsonObject } from "../../types.ts";
import { Failure } from "../failure.ts";
import type { SigningAgent } from "../key-file.ts";
import { jsonLine } from "../output.ts";
import { dialChannel } from "./channel.ts";

/** Nobody listens there, or no longer. What else ends the attempt is said by TLS, or is silence. */
const GONE: readonly string[] = ["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE", "EAGAIN"];

/** A connection to the control socket of the process that has the agent's connection. */
export class ControlClient {
  readonly #channel: TLSSocket;
  readonly #lines: AsyncIterator<string>;

  constructor(channel: TLSSocket, signal: AbortSignal) {
    const lines = createInterface({ input: channel });
    const destroy = () => channel.destroy();
    channel.once("close", () => {
      lines.close();
      signal.removeEventListener("abort", destroy);
    });
    signal.addEventListener("abort", destroy);
    if (signal.aborted) destroy();
    this.#channel = channel;
    this.#lines = lines[Symbol.asyncIterator]();
  }

  /** @returns undefined when nothing listens there any more. @throws {Failure} when it has not this agent's key. */
  static async connect(
    path: string,
    signing: SigningAgent,
    websocketUrl: string,
    signal: AbortSignal,
  ): Promise<ControlClient | undefined> {
    try {
      return new ControlClient(await dialChannel(path, signing, websocketUrl, signal), signal);
    } catch (error) {
      if (signal.aborted || GONE.includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
      throw otherKey(signing);
    }
  }

  write(line: object): void {
    this.#channel.write(`${jsonLine(line)}\n`);
  }

  /** The next line; undefined when the other process has ended, or what it says is no JSON. */
  async next(): Promise<JsonObject | undefined> {
    const { value, done } = await this.#lines.next();
    if (done) return undefined;
    try {
      return membersOf(parseJson(value));
    } catch {
      this.close();
      return undefined;
    }
  }

  close(): void {
    this.#channel.destroy();
  }
}

function otherKey({ agent }: SigningAgent): Failure {
  return new Failure(
    "invalid_key",
    `The process that has the control socket of ${agent} here has not this key.`,
    "Use the key file that it was started with, or end it and start it with this one.",
    { retry: "fix" },
  );
}
