import type { Retry } from "../../errors.ts";
import { outdatedWarning } from "../../version.ts";
import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import { checkClock, checkSignature, checkWebsocket } from "../checks.ts";
import type { Command } from "../command.ts";
import { reportWarning } from "../connection-reports.ts";
import { EXIT } from "../exit-codes.ts";
import { type Failure, failureOf } from "../failure.ts";
import { readIdentity, requireKey } from "../identity.ts";
import type { Io } from "../io.ts";
import { jsonLine, styled, writeLine } from "../output.ts";
import { checkPresence, checkReachable, checkReady, otherAddress, proxiesOf } from "../reach-checks.ts";
import { RelayHttp } from "../relay-http.ts";
import { Reporter } from "../reporter.ts";
import { connectionTransport } from "../transports/connection.ts";

export const check: Command = {
  help: `relay check: test key, clock and connection against a relay, and what the relay reaches of the agent; tell what to fix.

  relay check --key alice.json --url https://relay.example

  --key FILE  the agent's key file; or RELAY_KEY_FILE
  --url URL   the relay; or RELAY_URL; default http://127.0.0.1:8080
  --register  also register the agent for a moment; refused while it is online elsewhere
  --json      one line of JSON with all steps

Without --register nothing changes at the relay. The exit code is that of the first failed step.
`,
  run: async (args, io) => {
    const { values } = readArguments(args, { ...AGENT_OPTIONS, register: { type: "boolean" } });
    const { key, url, register, json = false } = values;
    const http = new RelayHttp(url, io);
    const report = new Report(json, io);
    const reporter = new Reporter(io.stderr, json);
    const credentials = await report.step(
      "key",
      async () => {
        return requireKey(await readIdentity(key, io.env, reporter));
      },
      ({ agent, key: { alg, keyId } }) => `${alg} key ${keyId} of ${agent}`,
    );
    const proxies = proxiesOf(http);
    if (proxies) await report.step("proxy", async () => proxies);
    const relay = await report.step("relay", () => checkReachable(http));
    const other = relay && (await otherAddress(http).catch(() => undefined));
    if (other) await report.step("address", async () => other);
    if (relay) await report.step("ready", () => checkReady(http));
    if (relay && credentials) await report.step("presence", () => checkPresence(credentials.agent, http));
    const hello =
      relay &&
      (await report.step(
        "websocket",
        () => checkWebsocket(http),
        () => `${http.websocketUrl} sent hello`,
      ));
    const warning = hello && outdatedWarning(hello.connectorVersion);
    if (warning) reportWarning(warning, reporter);
    if (hello) await report.step("clock", async () => checkClock(hello));
    const signs =
      credentials && hello && (await report.step("signature", () => checkSignature(credentials, http, hello)));
    if (register && signs) {
      await report.step("register", async () => {
        await (await connectionTransport({ credentials, http, takeOver: false }, io)).close();
        return `${credentials.agent} was online for a moment`;
      });
    }
    return await report.end();
  },
};

interface Step {
  readonly step: string;
  readonly ok: boolean;
  /** Of a failure. */
  readonly code?: string;
  readonly message: string;
  readonly hint?: string;
  readonly retry?: Retry | undefined;
}

/** Prints each step as it is done, and keeps the first failure. */
class Report {
  readonly #json: boolean;
  readonly #io: Io;
  readonly #steps: Step[] = [];
  #failure: Failure | undefined;

  constructor(json: boolean, io: Io) {
    this.#json = json;
    this.#io = io;
  }

  /** @param describe the text of a result. @returns undefined when the step failed. */
  async step<T>(step: string, run: () => Promise<T>, describe: (result: T) => string = String): Promise<T | undefined> {
    try {
      const result = await run();
      await this.#add({ step, ok: true, message: describe(result) });
      return result;
    } catch (error) {
      const failure = failureOf(error);
      this.#failure ??= failure;
      const { code, message, hint, retry } = failure;
      await this.#add({ step, ok: false, code, message, hint, retry });
      return undefined;
    }
  }

  async end(): Promise<number> {
    const { stdout } = this.#io;
    if (this.#json) await writeLine(stdout, jsonLine({ ok: this.#failure === undefined, steps: this.#steps }));
    else if (this.#failure === undefined) await writeLine(stdout, "No problem found.");
    return this.#failure?.exitCode ?? EXIT.ok;
  }

  async #add(step: Step): Promise<void> {
    this.#steps.push(step);
    if (this.#json) return;
    const { stdout } = this.#io;
    const mark = step.ok ? styled("green", "ok   ") : styled("red", "error");
    await writeLine(stdout, [mark, ` ${step.step.padEnd(11)} ${step.message}`]);
    if (step.hint) await writeLine(stdout, `${" ".repeat(18)}${step.hint}`);
  }
}
