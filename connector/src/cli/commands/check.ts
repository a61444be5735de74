import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import { checkClock, checkReachable, checkReady, checkSignature, greet } from "../checks.ts";
import type { Command, Io } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { type Failure, failureOf } from "../failure.ts";
import { readIdentity, signatory } from "../identity.ts";
import { jsonLine, styled, Voice, writeLine } from "../output.ts";
import { RelayHttp } from "../relay-http.ts";
import { connectionRoute } from "../routes/connection.ts";

export const command: Command = {
  help: `relay check: test key, clock and connection against a relay, and say what is wrong.

  relay check --key alice.json --url https://relay.example

  --key FILE  the agent's key file; or RELAY_KEY_FILE
  --url URL   the relay; or RELAY_URL; http://127.0.0.1:8080 when left out
  --register  bring the agent online for a moment, too; not while it is online elsewhere
  --json      one line of JSON with all steps

Without --register nothing changes at the relay. The exit code is that of the first fault.
`,
  run: async (args, io) => {
    const { values } = readArguments(args, { ...AGENT_OPTIONS, register: { type: "boolean" } });
    const { key, url, register, json = false } = values;
    const http = new RelayHttp(url, io);
    const report = new Report(json, io);
    const who = await report.step(
      "key",
      async () => {
        return signatory(await readIdentity(key, io.env, new Voice(io.stderr, json)));
      },
      ({ agent, key: { alg, keyId } }) => `${alg} key ${keyId} of ${agent}`,
    );
    const relay = await report.step("relay", () => checkReachable(http));
    if (relay) await report.step("ready", () => checkReady(http));
    const greeting =
      relay &&
      (await report.step(
        "websocket",
        () => greet(http),
        () => `${http.websocketUrl} says hello`,
      ));
    if (greeting) await report.step("clock", async () => checkClock(greeting));
    const signs = who && greeting && (await report.step("signature", () => checkSignature(who, http, greeting)));
    if (register && signs) {
      await report.step("register", async () => {
        await (await connectionRoute(who, http, false, io)).close();
        return `${who.agent} was online for a moment`;
      });
    }
    return await report.end();
  },
};

interface Step {
  readonly step: string;
  readonly ok: boolean;
  readonly message: string;
  readonly hint?: string;
}

/** Steps that are printed as they are done; a step that rests on a failed one is not tried. */
class Report {
  readonly #json: boolean;
  readonly #io: Io;
  readonly #steps: Step[] = [];
  #fault: Failure | undefined;

  constructor(json: boolean, io: Io) {
    this.#json = json;
    this.#io = io;
  }

  /** @param words what a result means. @returns undefined when the step failed. */
  async step<T>(step: string, run: () => Promise<T>, words: (result: T) => string = String): Promise<T | undefined> {
    try {
      const result = await run();
      await this.#add({ step, ok: true, message: words(result) });
      return result;
    } catch (error) {
      const failure = failureOf(error);
      this.#fault ??= failure;
      await this.#add({ step, ok: false, message: failure.message, hint: failure.hint });
      return undefined;
    }
  }

  async end(): Promise<number> {
    const { stdout } = this.#io;
    if (this.#json) await writeLine(stdout, jsonLine({ ok: this.#fault === undefined, steps: this.#steps }));
    else if (this.#fault === undefined) await writeLine(stdout, "All is well.");
    return this.#fault?.exitCode ?? EXIT.ok;
  }

  async #add(step: Step): Promise<void> {
    this.#steps.push(step);
    if (this.#json) return;
    const { stdout } = this.#io;
    const mark = step.ok ? styled(stdout, "green", "ok   ") : styled(stdout, "red", "fault");
    const hint = step.hint ? `\n${" ".repeat(18)}${step.hint}` : "";
    await writeLine(stdout, `${mark} ${step.step.padEnd(11)} ${step.message}${hint}`);
  }
}
