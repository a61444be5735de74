import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket, WebSocketServer } from "ws";
import type { Frame } from "../../test/support/agent.ts";

/** Stands between agents and a pod, frame by frame: a network that can fail, and a relay that can lie. */
export class WireProxy {
  /** Envelopes that agents sent, in order. */
  readonly sent: Frame[] = [];
  /** The ids of the connections that agents were told of, in order. */
  readonly greeted: string[] = [];
  /** Nothing gets through any more, either way, and no connection ends: what a dead network looks like. */
  isSilent = false;
  /** New connections are refused with this status: no relay is there. */
  refusesWith: number | undefined;
  /** How many connections were ever made. */
  connections = 0;
  /** What becomes of a frame on its way to an agent; undefined keeps it back. */
  toAgent: (frame: Frame) => Frame | undefined = (frame) => frame;
  /** What becomes of an envelope on its way to the relay. */
  toRelay: (envelope: Frame) => Frame | undefined = (envelope) => envelope;
  /** What stands at the path of the signing manifest. */
  manifest: () => Promise<string> = async () => "{}";
  #target: string;
  #server: WebSocketServer | undefined;
  /** What a look-up of a credential is answered with; the relay's own answer unless a test says otherwise. */
  lookUp: (path: string) => Promise<string | undefined> = async (path) => {
    const answer = await fetch(`${this.#target}${path}`);
    return answer.status === 200 ? await answer.text() : undefined;
  };
  /** What check-online says; the relay's own answer unless a test says otherwise. */
  presence: (path: string) => Promise<string> = async (path) => await (await fetch(`${this.#target}${path}`)).text();
  readonly #http = createServer(async ({ url = "" }, answer) => {
    const text = await this.#answerTo(url).catch(() => undefined);
    if (text === undefined) answer.writeHead(404);
    answer.end(text);
  });
  /** What `hello` says instead of the pod's. */
  heartbeatIntervalMs: number;

  /** @param target http address of a pod. */
  constructor(target: string, heartbeatIntervalMs = 15_000) {
    this.#target = target;
    this.heartbeatIntervalMs = heartbeatIntervalMs;
  }

  get url(): string {
    const { port } = this.#http.address() as AddressInfo;
    return `ws://127.0.0.1:${port}`;
  }

  async start(): Promise<this> {
    this.#server = new WebSocketServer({
      server: this.#http,
      verifyClient: (_, then) => then(this.refusesWith === undefined, this.refusesWith),
    });
    this.#server.on("connection", (agent) => this.#join(agent));
    this.#http.listen(0, "127.0.0.1");
    await once(this.#http, "listening");
    return this;
  }

  /** New connections go to another pod. */
  lead(target: string): void {
    this.#target = target;
  }

  /** Cuts every connection, without a goodbye. */
  cut(): void {
    for (const agent of this.#server?.clients ?? []) agent.terminate();
  }

  /** Closes every agent's connection with this code, as a relay may. */
  closeAgents(code: number): void {
    for (const agent of this.#server?.clients ?? []) agent.close(code);
  }

  /** Resolves once no agent is connected. */
  async left(): Promise<void> {
    await Promise.all([...(this.#server?.clients ?? [])].map((agent) => once(agent, "close")));
  }

  /** Says this to every agent, as a relay may. */
  tell(frame: Frame): void {
    for (const agent of this.#server?.clients ?? []) agent.send(JSON.stringify(frame));
  }

  async stop(): Promise<void> {
    this.cut();
    this.#server?.close();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  async #answerTo(url: string): Promise<string | undefined> {
    if (url.startsWith("/v1/agents/")) return await this.lookUp(url);
    return url.startsWith("/api/onboarding/check-online") ? await this.presence(url) : await this.manifest();
  }

  #join(agent: WebSocket): void {
    this.connections += 1;
    if (this.isSilent) return;
    const pod = new WebSocket(`${this.#target.replace("http", "ws")}/ws`);
    const opened = once(pod, "open");
    opened.catch(() => agent.terminate());
    agent.on("message", async (data: Buffer) => {
      await opened.catch(() => {});
      const envelope = JSON.parse(data.toString());
      this.sent.push(envelope);
      const passed = this.isSilent ? undefined : this.toRelay(envelope);
      if (passed !== undefined && pod.readyState === pod.OPEN) pod.send(JSON.stringify(passed));
    });
    pod.on("message", (data: Buffer) => {
      const frame = JSON.parse(data.toString());
      if (frame.frame === "hello") frame.limits.heartbeat_interval_ms = this.heartbeatIntervalMs;
      const passed = this.isSilent ? undefined : this.toAgent(frame);
      if (passed?.frame === "hello") this.greeted.push(passed.connection_id);
      if (passed !== undefined) agent.send(JSON.stringify(passed));
    });
    pod.on("error", () => {});
    agent.on("error", () => {});
    pod.on("close", (code: number) => (code === 1006 ? agent.terminate() : agent.close(code)));
    agent.on("close", () => pod.terminate());
  }
}
