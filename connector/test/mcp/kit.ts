import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { COMPILE_CACHE } from "../../../test/support/compile-cache.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import type { AgentKey } from "../../src/index.ts";
import { jsonLines, type TestAgent, WholeStage } from "../kit.ts";

const RELAY = fileURLToPath(new URL("../../bin/relay.mjs", import.meta.url));

/** What a tool answered, as it came over the wire. */
// biome-ignore lint/suspicious/noExplicitAny: every tool has its own shape.
type Structured = any;

type Transport = StdioClientTransport | StreamableHTTPClientTransport;

/** A host with a model: the SDK's own client, and the process `relay mcp` that it started, or that it reaches over HTTP. */
export class Host {
  readonly client = new Client({ name: "test-host", version: "1.0.0" });
  /** The log messages that the server sent. */
  readonly notifications: unknown[] = [];
  /** Lines on stdout that are not MCP, and other errors of the transport. */
  readonly errors: Error[] = [];
  log = "";
  hasEnded = false;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async start(): Promise<this> {
    this.client.onclose = () => {
      this.hasEnded = true;
    };
    this.client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      this.notifications.push(params.data);
    });
    if ("stderr" in this.#transport) {
      this.client.onerror = (error) => this.errors.push(error);
      this.#transport.stderr?.on("data", (chunk: Buffer) => {
        this.log += chunk.toString();
      });
    }
    await this.client.connect(this.#transport as Parameters<Client["connect"]>[0]);
    return this;
  }

  /** Of the process that it started. */
  get pid(): number {
    return (this.#transport as StdioClientTransport).pid as number;
  }

  async stop(): Promise<void> {
    await this.client.close();
  }

  /** The structured result of a tool, which must succeed. */
  async call(name: string, input: object = {}, signal?: AbortSignal): Promise<Structured> {
    const result = await this.#call(name, input, signal);
    if (result.isError) throw new Error(`${name} failed: ${result.text}`);
    return result.structuredContent;
  }

  /** The text of a tool's error; the tool must fail. */
  async refusal(name: string, input: object = {}): Promise<string> {
    const result = await this.#call(name, input);
    if (!result.isError) throw new Error(`${name} did not fail: ${result.text}`);
    return result.text;
  }

  /** A tool's error, as its text has it. */
  async error(name: string, input: object = {}): Promise<Structured> {
    return JSON.parse(await this.refusal(name, input));
  }

  /** Every text that a tool answered with. */
  async texts(name: string, input: object = {}): Promise<string[]> {
    return (await this.#call(name, input)).texts;
  }

  /** The kinds of events that the process reported on stderr. */
  get events(): string[] {
    return jsonLines(this.log).map(({ event }) => event);
  }

  /** Resolves when the process has read everything that was sent to it so far. */
  async untilRead(): Promise<void> {
    await this.client.ping();
  }

  async untilConnection(status: string): Promise<void> {
    await until(
      `the agent is ${status}`,
      async () => (await this.call("my_status")).connection.status === status,
      15_000,
    );
  }

  async #call(name: string, input: object, signal?: AbortSignal) {
    const request = { name, arguments: input as Record<string, unknown> };
    const result = await this.client.callTool(request, undefined, signal && { signal });
    const texts = (result.content as { text: string }[]).map(({ text }) => text);
    const { structuredContent, isError = false } = result;
    return { structuredContent, isError, texts, text: texts.join("\n") };
  }
}

/** What a client of `relay mcp --http` needs. */
export interface HttpAccess {
  readonly url: string;
  readonly token: string;
  readonly tokenFile: string;
}

/** The process `relay mcp` without a client, or another command. */
export class RelayProcess {
  readonly child: ChildProcessWithoutNullStreams;
  readonly exitCode: Promise<number | null>;
  stdout = "";
  stderr = "";

  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, [RELAY, ...args], { env: COMPILE_CACHE });
    this.child.stdout.on("data", (chunk) => {
      this.stdout += chunk;
    });
    this.child.stderr.on("data", (chunk) => {
      this.stderr += chunk;
    });
    this.exitCode = once(this.child, "close").then(([code]) => code);
  }

  async untilOnline(): Promise<void> {
    await until("it is online", () => jsonLines(this.stderr).some(({ event }) => event === "online"));
  }
}

/** A stage whose agents can be hosts of `relay mcp`. */
export class McpStage extends WholeStage {
  readonly #hosts: Host[] = [];
  readonly #processes: RelayProcess[] = [];
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  override async start(): Promise<void> {
    await super.start();
    this.#folder = await temporaryFolder();
  }

  /** Initialized; the connection to the relay may not be there yet. @param agent by name, or one that the relay does not know. */
  async host(agent: string | TestAgent, url: string, options: readonly string[] = []): Promise<Host> {
    return await this.hostOf(await this.keyFile(typeof agent === "string" ? this.agent(agent) : agent), url, options);
  }

  /** The same, of a key file. */
  async hostOf(file: string, url: string, options: readonly string[] = []): Promise<Host> {
    return await this.keylessHost(url, ["--key", file, ...options]);
  }

  /** The same, of no key. */
  async keylessHost(url: string, options: readonly string[] = []): Promise<Host> {
    const args = [RELAY, "mcp", "--json", ...options];
    const command = {
      command: process.execPath,
      args,
      env: { ...COMPILE_CACHE, RELAY_URL: url },
      stderr: "pipe" as const,
    };
    return await this.#started(new StdioClientTransport(command));
  }

  /** A host of `relay mcp --http`. */
  async httpHost({ url, token }: HttpAccess): Promise<Host> {
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    return await this.#started(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  }

  async #started(transport: Transport): Promise<Host> {
    const host = new Host(transport);
    this.#hosts.push(host);
    return await host.start();
  }

  /** Registered with the relay. */
  async onlineHost(name: string, url: string, options: readonly string[] = []): Promise<Host> {
    const host = await this.host(name, url, options);
    await host.untilConnection("online");
    return host;
  }

  /** The bare process, for what the SDK's transport does not show. */
  async process(name: string, url: string, options: readonly string[] = [], command = "mcp"): Promise<RelayProcess> {
    return this.processOf(await this.keyFile(this.agent(name)), url, options, command);
  }

  /** The same, of a key file. */
  processOf(file: string, url: string, options: readonly string[] = [], command = "mcp"): RelayProcess {
    const process = new RelayProcess([command, "--json", "--key", file, "--url", url, ...options]);
    this.#processes.push(process);
    return process;
  }

  /** Serves over HTTP. */
  async httpProcess(name: string, options: readonly string[] = []): Promise<RelayProcess & HttpAccess> {
    const server = await this.process(name, this.url, ["--http", "127.0.0.1:0", ...options]);
    const listening = () => jsonLines(server.stderr).find(({ event }) => event === "mcp_http");
    await until("it listens", () => listening() !== undefined, 15_000);
    const { url, token_place } = listening() as { url: string; token_place: string };
    const token = (await readFile(token_place, "utf8")).trim();
    return Object.assign(server, { url, token, tokenFile: token_place });
  }

  /** The key as its agent keeps it. @returns its path. */
  async keyFile({ agent, key }: TestAgent): Promise<string> {
    return await this.write(`${key.keyId}.json`, { agent_id: agent, ...keyRecord(key) });
  }

  /** The key as others know it. @returns its path. */
  async publicFile({ key, record }: TestAgent): Promise<string> {
    return await this.write(`${key.keyId}.public.json`, record);
  }

  path(name: string): string {
    return join((this.#folder as { path: string }).path, name);
  }

  /** A private file. @returns its path. */
  async write(name: string, record: object | string): Promise<string> {
    const path = this.path(name);
    await writeFile(path, typeof record === "string" ? record : JSON.stringify(record), { mode: 0o600 });
    return path;
  }

  /** Ends the hosts and connectors of one test. */
  override async clear(): Promise<void> {
    const hosts = this.#hosts.splice(0);
    await Promise.all(hosts.map((host) => host.stop()));
    for (const { child } of this.#processes.splice(0)) child.kill("SIGKILL");
    await super.clear();
    const errors = hosts.flatMap((host) => host.errors);
    if (errors.length > 0) throw new Error(`stdout had something else than MCP: ${errors.join("\n")}`);
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#folder?.[Symbol.asyncDispose]();
  }
}

function keyRecord(key: AgentKey): object {
  const common = { key_id: key.keyId, alg: key.alg };
  return key.alg === "ed25519" ? { ...common, private_key: key.privateKey } : { ...common, secret: key.secret };
}
