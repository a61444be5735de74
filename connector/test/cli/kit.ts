import { expect } from "@jest/globals";
import { freePort } from "../../../test/support/free-port.ts";
import { type Pod, serveWhole } from "../../../test/support/relay.ts";
import { jsonLines, Stage } from "../kit.ts";
import type { Environment, Running } from "./running.ts";
import { Shell } from "./shell.ts";

/** An address where nothing listens. */
export async function nowhere(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

/** A whole relay on one address, key files of its agents, and command lines that are run against it. */
export class CommandLine extends Shell {
  readonly stage: Stage;
  readonly #names: readonly string[];
  /** No other process takes it while the relay is away. */
  #port: number | undefined;
  #pod: Pod | undefined;

  constructor(...names: readonly string[]) {
    super();
    this.stage = new Stage(...names);
    this.#names = names;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  override async start(): Promise<void> {
    await this.stage.start();
    await super.start();
    for (const name of this.#names) await this.writeKey(name);
    await this.serve();
  }

  /** Starts the relay; a second time, on the address that it had before. */
  async serve(): Promise<void> {
    this.#port ??= await freePort();
    this.#pod = await serveWhole(this.stage.relay, { PORT: String(this.#port) });
  }

  async shut(): Promise<void> {
    await this.#pod?.stop();
  }

  async writeKey(name: string, mode = 0o600): Promise<void> {
    const { agent, key } = this.stage.agent(name);
    const secret = key.alg === "ed25519" ? { private_key: key.privateKey } : { secret: key.secret };
    const record = { agent_id: agent, key_id: key.keyId, alg: key.alg, ...secret };
    await this.write(`${name}.json`, record, mode);
  }

  keyFile(name: string): string {
    return this.file(`${name}.json`);
  }

  protected override environment(env: Environment): Environment {
    return super.environment({ RELAY_URL: this.url, ...env });
  }

  /** A `relay listen` whose agent is online. */
  async listen(name: string, ...args: string[]): Promise<Running> {
    const running = this.begin(["listen", "--json", "--key", this.keyFile(name), ...args]);
    await running.reported("online");
    return running;
  }

  override async clear(): Promise<void> {
    await super.clear();
    await this.stage.clear();
  }

  override async stop(): Promise<void> {
    await this.clear();
    await this.shut();
    await this.stage.stop();
    await super.stop();
  }
}

/** Runs a command line with `--json`, which must fail in this way, and say so in one line. @returns what stderr held. */
export async function expectFailure(
  line: CommandLine,
  args: string[],
  exitCode: number,
  code: string,
  env = {},
): Promise<string> {
  const { code: ended, stdout, stderr } = await line.run(args, { env });
  expect([ended, stdout]).toEqual([exitCode, ""]);
  const reports = jsonLines(stderr).filter(({ event }) => event !== "waiting");
  const [{ retry, ...error }, ...more] = reports as [Record<string, unknown>];
  const texts = { message: expect.any(String), hint: expect.any(String) };
  expect([error, more]).toEqual([{ event: "error", ...texts, code, outcome: "refused" }, []]);
  expect(["never", "fix", "later"]).toContain(retry);
  return stderr;
}
