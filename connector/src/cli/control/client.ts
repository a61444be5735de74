import type { TLSSocket } from "node:tls";
import { membersOf } from "../../frames.ts";
import { parseJson } from "../../parse-json.ts";
import type { JsonObject } from "../../types.ts";
import { jsonLine } from "../output.ts";
import { LiveLines } from "./live-lines.ts";

/** A connection to the control socket of the process that has the agent's connection. */
export class ControlClient {
  /** Of its socket. */
  readonly path: string;
  readonly #channel: TLSSocket;
  readonly #lines: LiveLines;
  readonly #texts: AsyncIterator<string>;

  constructor(channel: TLSSocket, path: string, signal: AbortSignal) {
    this.path = path;
    const destroy = () => channel.destroy();
    channel.once("close", () => signal.removeEventListener("abort", destroy));
    signal.addEventListener("abort", destroy);
    if (signal.aborted) destroy();
    this.#channel = channel;
    this.#lines = new LiveLines(channel);
    this.#texts = this.#lines.texts[Symbol.asyncIterator]();
  }

  write(line: object): void {
    this.#lines.write(jsonLine(line));
  }

  /** The next line; undefined when the other process has ended, is not heard of any more, or says what is no JSON. */
  async next(): Promise<JsonObject | undefined> {
    const { value, done } = await this.#texts.next();
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
