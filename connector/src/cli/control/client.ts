import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import { membersOf, textOf } from "../../frames.ts";
import { parseJson } from "../../parse-json.ts";
import type { JsonObject } from "../../types.ts";
import { Failure } from "../failure.ts";
import type { SigningAgent } from "../key-file.ts";
import { jsonLine } from "../output.ts";
import { CONTROL_VERSION, proofOf } from "./proof.ts";

/** A connection to the control socket of the process that has the agent's connection. */
export class ControlClient {
  readonly #socket: Socket;
  readonly #lines: AsyncIterator<string>;

  constructor(socket: Socket, signal: AbortSignal) {
    const lines = createInterface({ input: socket });
    const destroy = () => socket.destroy();
    socket.once("close", () => {
      lines.close();
      signal.removeEventListener("abort", destroy);
    });
    signal.addEventListener("abort", destroy);
    if (signal.aborted) destroy();
    this.#socket = socket;
    this.#lines = lines[Symbol.asyncIterator]();
  }

  /** @returns undefined when nothing listens there any more. @throws {Failure} when it does not take this agent's key. */
  static async connect(path: string, signing: SigningAgent, signal: AbortSignal): Promise<ControlClient | undefined> {
    const socket = connect(path);
    try {
      await once(socket, "connect");
    } catch {
      return undefined;
    }
    const client = new ControlClient(
      socket.on("error", () => {}),
      signal,
    );
    try {
      return (await client.#prove(signing, basename(path))) ? client : undefined;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  write(line: object): void {
    this.#socket.write(`${jsonLine(line)}\n`);
  }

  /** The next line; undefined when the other process has ended. */
  async next(): Promise<JsonObject | undefined> {
    const { value, done } = await this.#lines.next();
    return done ? undefined : membersOf(parseJson(value));
  }

  close(): void {
    this.#socket.destroy();
  }

  /** @returns false when the other process ended meanwhile. */
  async #prove(signing: SigningAgent, socketName: string): Promise<boolean> {
    this.write({ control: CONTROL_VERSION });
    const asked = await this.next();
    if (asked === undefined) return false;
    const challenge = textOf(asked.challenge);
    if (challenge === undefined) throw otherVersion(asked);
    this.write({ proof: await proofOf(signing, socketName, challenge) });
    const answer = await this.next();
    if (answer?.event === "refused") throw refusal(answer);
    return answer !== undefined;
  }
}

/** Processes before version 2 take no proof, and refuse the line that offers one. */
function otherVersion(answer: JsonObject): Failure {
  if (answer.code === "other_version") return refusal(answer);
  const hint = "End the relay listen or relay mcp of this agent that runs here, and start it again with this version.";
  return new Failure("other_version", "The process that has the agent's connection is of an older version.", hint);
}

function refusal({ code, message, hint }: JsonObject): Failure {
  return new Failure(textOf(code) ?? "failed", textOf(message) ?? "", textOf(hint) ?? "", { retry: "fix" });
}
