import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, type Writable } from "node:stream";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import type { AgentKey } from "../../src/index.ts";
import { type Environment, Running, setHome } from "../cli/shell.ts";
import { jsonLines, type TestAgent, WholeStage } from "../kit.ts";

/** What a tool answered, as it came over the wire. */
// biome-ignore lint/suspicious/noExplicitAny: every tool has its own shape.
type Structured = any;

type Transport = StdioServerTransport | StdioClientTransport | StreamableHTTPClientTransport;

/** A host with a model: the SDK's own client, and the `relay mcp` that it started, or that it reaches over HTTP. */
export class Host {
  readonly client = new Client({ name: "test-host", version: "1.0.0" });
  /** The log messages that the server sent. */
  readonly notifications: unknown[] = [];
  /** Lines on stdout that are not MCP, and other errors of the transport. */
  readonly errors: Error[] = [];
  hasEnded = false;
  readonly #transport: Transport;
  readonly #running: Running | undefined;

  /** @param running what it started. */
  constructor(transport: Transport, running?: Running) {
    this.#transport = transport;
    this.#running = running;
  }

  async start(): Promise<this> {
    this.client.onclose = () => {
      this.hasEnded = true;
    };
    this.client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      this.notifications.push(params.data);
    });
    if (this.#running !== undefined) {
      this.client.onerror = (error) => this.errors.push(error);
      void this.#running.end().then(() => this.#transport.close());
    }
    await this.client.connect(this.#transport as Parameters<Client["connect"]>[0]);
    return this;
  }

  /** Its client closes the connection. Resolves when what it started has ended. */
  async stop(): Promise<void> {
    await this.client.close();
    this.#running?.stdin.end();
    await this.#running?.end();
  }

  /** What it reported on stderr. */
  get log(): string {
    return this.#running?.stderr ?? "";
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

  /** The kinds of events that the server reported on stderr. */
  get events(): string[] {
    return jsonLines(this.log).map(({ event }) => event);
  }

  /** Takes messages until there are so many. */
  async take(count: number): Promise<Structured[]> {
    const taken: Structured[] = [];
    while (taken.length < count) taken.push(...(await this.call("wait_for_messages")).messages);
    return taken;
  }

  /** Resolves when the server has read everything that was sent to it so far. */
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

  /** Resolves when it is online and shares its connection with no other process. */
  async untilAlone(): Promise<void> {
    const isAlone = async () => {
      const { status, shared_with } = (await this.call("my_status")).connection;
      return status === "online" && shared_with === undefined;
    };
    await until("it is alone", isAlone);
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

/** A stage whose agents can be hosts of `relay mcp`. */
export class McpStage extends WholeStage {
  readonly #hosts: Host[] = [];
  readonly #running: Running[] = [];
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  override async start(): Promise<void> {
    await super.start();
    this.#folder = await temporaryFolder();
    setHome(this.path("."));
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
    const output = new PassThrough();
    const running = this.#begin(["mcp", "--json", ...options], { RELAY_URL: url }, output);
    // The SDK's transport of servers is the one that takes streams; a message is the same from either end.
    return await this.#started(new Host(new StdioServerTransport(output, running.stdin), running));
  }

  /** A host of `relay mcp --http`. */
  async httpHost({ url, token }: HttpAccess): Promise<Host> {
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    return await this.#started(new Host(new StreamableHTTPClientTransport(new URL(url), { requestInit })));
  }

  async #started(host: Host): Promise<Host> {
    this.#hosts.push(host);
    return await host.start();
  }

  /** Registered with the relay. */
  async onlineHost(name: string, url: string, options: readonly string[] = []): Promise<Host> {
    const host = await this.host(name, url, options);
    await host.untilConnection("online");
    return host;
  }

  /** A command without a client. */
  async begin(name: string, url: string, options: readonly string[] = [], command = "mcp"): Promise<Running> {
    return this.beginOf(await this.keyFile(this.agent(name)), url, options, command);
  }

  /** The same, of a key file. */
  beginOf(file: string, url: string, options: readonly string[] = [], command = "mcp"): Running {
    return this.#begin([command, "--json", "--key", file, "--url", url, ...options]);
  }

  #begin(args: readonly string[], env: Environment = {}, output?: Writable): Running {
    const running = new Running(args, env, output);
    this.#running.push(running);
    return running;
  }

  /** Serves over HTTP. */
  async httpServer(name: string, options: readonly string[] = []): Promise<Running & HttpAccess> {
    const server = await this.begin(name, this.url, ["--http", "127.0.0.1:0", ...options]);
    await server.reported("mcp_http");
    const { url, token_place } = server.reports.find(({ event }) => event === "mcp_http");
    const token = (await readFile(token_place, "utf8")).trim();
    return Object.assign(server, { url, token, tokenFile: token_place });
  }

  /** Resolves when the relay knows that the agent has no connection. */
  async untilGone(agent: string): Promise<void> {
    const view = this.relay.view();
    await until(`${agent} is gone`, async () => !(await view.isConnected(agent.replace("agent://", ""))));
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

  /** Ends what one test began. */
  override async clear(): Promise<void> {
    const hosts = this.#hosts.splice(0);
    await Promise.all([...this.#running.splice(0), ...hosts].map((one) => one.stop()));
    await super.clear();
    const errors = hosts.flatMap((host) => host.errors);
    if (errors.length > 0) throw new Error(`stdout had something else than MCP: ${errors.join("\n")}`);
  }

  override async stop(): Promise<void> {
    await super.stop();
    setHome();
    await this.#folder?.[Symbol.asyncDispose]();
  }
}

function keyRecord(key: AgentKey): object {
  const common = { key_id: key.keyId, alg: key.alg };
  return key.alg === "ed25519" ? { ...common, private_key: key.privateKey } : { ...common, secret: key.secret };
}
