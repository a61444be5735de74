import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { prometheusPrograms } from "../../deploy/local/prometheus-program.mjs";
import { freePort } from "../support/free-port.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { until } from "../support/until.ts";

/** A sample of an instant query: its labels and its value. */
interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

interface Answer<Data> {
  readonly status: "success" | "error";
  readonly error?: string;
  readonly data: Data;
}

/** A Prometheus that scrapes a few addresses several times a second, and forgets all of it. */
export class Prometheus {
  readonly #targets: readonly string[];
  readonly #rules: string;
  #process: ChildProcess | undefined;
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;
  #url = "";

  /** @param urls of metrics. @param rules path of a rule file. */
  constructor(urls: readonly string[], rules: string) {
    this.#targets = urls.map((url) => new URL(url).host);
    this.#rules = rules;
  }

  async start(): Promise<void> {
    this.#folder = await temporaryFolder();
    const { path } = this.#folder;
    const config = join(path, "prometheus.yml");
    await writeFile(config, JSON.stringify(this.#config()));
    const address = `127.0.0.1:${await freePort()}`;
    const flags = { "config.file": config, "storage.tsdb.path": join(path, "data"), "web.listen-address": address };
    const options = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    this.#process = spawn(prometheusPrograms().prometheus, options, { stdio: "ignore" });
    this.#url = `http://${address}`;
    await until("Prometheus is ready", () =>
      fetch(`${this.#url}/-/ready`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  }

  async stop(): Promise<void> {
    if (this.#process?.exitCode === null) {
      this.#process.kill("SIGTERM");
      await once(this.#process, "exit");
    }
    await this.#folder?.[Symbol.asyncDispose]();
  }

  /** @throws {Error} that says why it refused the query. */
  async query(expr: string): Promise<readonly Sample[]> {
    const { result } = await this.#ask<{ result: readonly Sample[] }>(`query?${new URLSearchParams({ query: expr })}`);
    return result;
  }

  /** Every rule's name with its error; undefined of one that was evaluated. */
  async rules(): Promise<readonly (readonly [string, string | undefined])[]> {
    const { groups } = await this.#ask<{ groups: { rules: { name: string; health: string; lastError?: string }[] }[] }>(
      "rules",
    );
    const rules = groups.flatMap((group) => group.rules);
    return rules.map(({ name, health, lastError }) => [name, health === "ok" ? undefined : (lastError ?? health)]);
  }

  async #ask<Data>(path: string): Promise<Data> {
    const answer = (await (await fetch(`${this.#url}/api/v1/${path}`)).json()) as Answer<Data>;
    if (answer.status !== "success") throw new Error(`${path}: ${answer.error}`);
    return answer.data;
  }

  #config(): object {
    return {
      global: { scrape_interval: "250ms", scrape_timeout: "250ms", evaluation_interval: "250ms" },
      rule_files: [this.#rules],
      scrape_configs: [{ job_name: "agent-relay", static_configs: [{ targets: this.#targets }] }],
    };
  }
}
