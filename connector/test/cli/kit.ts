import { freePort } from "../../../test/support/free-port.ts";
import type { Pod } from "../../../test/support/relay.ts";
import { serveWhole } from "../../../test/support/whole-relay.ts";
import { Stage } from "../kit.ts";
import { type Environment, type Running, Shell } from "./shell.ts";

/** An address where nothing listens. */
export async function nowhere(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

/** A whole relay on one address, key files of its agents, and command lines that are run against it. */
export class CommandLine extends Shell {
  readonly stage: Stage;
  readonly #names: readonly string[];
  #address: Pod | undefined;
  #pod: Pod | undefined;

  constructor(...names: readonly string[]) {
    super();
    this.stage = new Stage(...names);
    this.#names = names;
  }

  get url(): string {
    return this.#address?.url as string;
  }

  override async start(): Promise<void> {
    await this.stage.start();
    await super.start();
    for (const name of this.#names) await this.writeKey(name);
    await this.serve();
  }

  /** Starts the relay; a second time, on the address that it had before. */
  async serve(): Promise<void> {
    this.#pod = await serveWhole(this.stage.relay, this.#address && { PORT: String(this.#address.port) });
    this.#address ??= this.#pod;
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

  override begin(args: readonly string[], env: Environment = {}): Running {
    return super.begin(args, { RELAY_URL: this.url, ...env });
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
