import { membersOf, textOf } from "../../frames.ts";
import type { JsonObject } from "../../types.ts";
import { Failure } from "../failure.ts";
import type { SigningAgent } from "../key-file.ts";
import { CONTROL_VERSION, isProof, newChallenge } from "./proof.ts";

/**
 * Admits one client of a control socket, once it has proven that it has the agent's key:
 *
 *   {"control":2}  →  {"event":"challenge","control":2,"challenge":"…"}
 *   {"proof":"…"}  →  {"event":"proven"}
 */
export class Admission {
  readonly #signing: SigningAgent;
  readonly #socketName: string;
  /** For one proof. */
  #challenge: string | undefined;
  #isProven = false;

  constructor(signing: SigningAgent, socketName: string) {
    this.#signing = signing;
    this.#socketName = socketName;
  }

  get isProven(): boolean {
    return this.#isProven;
  }

  /** What a line is answered with; undefined for a request of a client that is admitted. @throws {Failure} */
  async answerTo(line: unknown): Promise<JsonObject | undefined> {
    if (this.#isProven) return undefined;
    const { control, proof } = membersOf(line);
    if (control === CONTROL_VERSION) {
      this.#challenge = newChallenge();
      return { event: "challenge", control, challenge: this.#challenge };
    }
    if (proof === undefined) throw otherVersion();
    const challenge = this.#challenge;
    this.#challenge = undefined;
    const hasKey =
      challenge !== undefined && (await isProof(this.#signing, this.#socketName, challenge, textOf(proof) ?? ""));
    if (!hasKey) throw otherKey(this.#signing);
    this.#isProven = true;
    return { event: "proven" };
  }
}

/** Clients before version 2 begin with a request. */
function otherVersion(): Failure {
  return new Failure(
    "other_version",
    "The process that has the agent's connection is of another version, and takes requests only after a proof of the key.",
    "Use the version of agent-relay-connector that runs there, or end it and start it with this one.",
    { retry: "fix" },
  );
}

function otherKey({ agent }: SigningAgent): Failure {
  return new Failure(
    "invalid_key",
    `The process that has the connection of ${agent} runs under another key.`,
    "Use the key file that it was started with, or end it and start it with this one.",
    { retry: "fix" },
  );
}
