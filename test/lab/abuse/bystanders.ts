import { request } from "node:http";
import { text } from "node:stream/consumers";
import type { AgentSocket, Frame } from "../../support/agent.ts";
import { Ledger, type Violation, violations } from "../../support/ledger.ts";
import { until } from "../../support/until.ts";
import type { Deployment } from "./deployment.ts";
import { type Sample, type SampleKind, samplesOf } from "./figures.ts";

/** How often each is asked for, ms apart. No bystander comes near a limit of its own, all attacks long. */
const EVERY_MS = { message: 50, heartbeat: 200, session: 1300, health: 100, presence: 500, gateway: 2500 } as const;
const NAMES = ["ann", "ben"] as const;
const PRESENCE_PATH = "/api/onboarding/check-online?agent_id=agent://ben";
const ANSWERS_WITHIN_MS = 3000;

/** All that bystanders asked for, and which promises were broken to them. */
interface Noticed {
  readonly samples: readonly Sample[];
  readonly violations: readonly Violation[];
}

/**
 * Two agents, one on each connector, who exchange messages, negotiate sessions and send heartbeats, and whoever asks the
 * services over HTTP: none of them has a part in any attack.
 */
export class Bystanders {
  readonly #relay: Deployment;
  #pair: readonly AgentSocket[] = [];
  /** Of this attack. */
  #ledger = new Ledger();
  /** What was asked over HTTP, and connections that were closed. */
  #samples: Sample[] = [];
  readonly #requests = new Set<Promise<void>>();
  #timers: NodeJS.Timeout[] = [];
  #turn = 0;

  constructor(relay: Deployment) {
    this.#relay = relay;
  }

  /** From here on they ask. */
  async start(): Promise<void> {
    await this.#connect();
    const ask = {
      message: () => this.#sendToOther("message.send", { message: "good morning" }),
      heartbeat: () => this.#send(this.#next(), "agent.heartbeat", {}),
      session: () => this.#sendToOther("session.request", { purpose: "to talk" }),
      health: () => this.#ask("health", this.#relay.services[this.#next(4)]?.port as number, "/health"),
      presence: () => this.#ask("presence", this.#relay.gateway.port, PRESENCE_PATH),
      gateway: () => this.#sendOverHttp(),
    } satisfies Record<SampleKind, () => void>;
    this.#timers = Object.entries(EVERY_MS).map(([kind, ms]) => setInterval(ask[kind as SampleKind], ms));
  }

  /** They ask no more. Resolves when all that was asked since the start is answered or its time is over. */
  async stop(): Promise<Noticed> {
    for (const timer of this.#timers) clearInterval(timer);
    const [ledger, samples] = [this.#ledger, this.#samples];
    const isSettled = () =>
      violations(ledger.content).length === 0 &&
      ledger.content.entries.every(({ attempts }) => attempts.every(({ answer }) => answer !== undefined));
    await until("every bystander has its answers", isSettled, ANSWERS_WITHIN_MS).catch(() => {});
    await Promise.all(this.#requests);
    this.#ledger = new Ledger();
    this.#samples = [];
    return { samples: [...samples, ...samplesOf(ledger.content)], violations: violations(ledger.content) };
  }

  async leave(): Promise<void> {
    await Promise.all(this.#pair.map((socket) => socket.close()));
  }

  /** New connections for those that the last attack closed. */
  async #connect(): Promise<void> {
    this.#pair = await Promise.all(
      this.#relay.connectors.map(async (pod, n) => {
        const present = this.#pair[n];
        if (present !== undefined && present.closed === undefined) return present;
        const socket = await this.#relay.online(pod, NAMES[n] as string);
        socket.socket.on("message", (data: Buffer) => this.#receive(n, JSON.parse(data.toString())));
        socket.socket.on("close", (code: number) => {
          this.#samples.push({ kind: "message", at: performance.now(), ms: 0, refused: `closed ${code}` });
        });
        return socket;
      }),
    );
  }

  #receive(who: number, frame: Frame): void {
    if (frame.frame === "deliver") this.#delivered(who, frame);
    else this.#ledger.received(frame, connectionOf(who), "");
  }

  /** What is not in the ledger came from the gateway, or late from before. */
  #delivered(who: number, frame: Frame): void {
    const { id, type, from } = frame.envelope;
    if (this.#ledger.entry(id) === undefined) return;
    this.#ledger.received(frame, connectionOf(who), "");
    if (type !== "session.request") return;
    this.#send(who, "session.approve", { to: from, payload: { session_id: frame.session_id } });
  }

  #sendToOther(type: string, payload: object): void {
    const who = this.#next();
    this.#send(who, type, { to: `agent://${NAMES[1 - who]}`, payload });
  }

  #send(who: number, type: string, fields: object): void {
    const socket = this.#pair[who];
    if (socket === undefined || socket.closed !== undefined) return;
    const envelope = this.#relay.envelope(NAMES[who] as string, type, { ...fields });
    this.#ledger.sent(envelope, connectionOf(who));
    socket.send(envelope);
  }

  #sendOverHttp(): void {
    const body = { from: "agent://cora", to: "agent://ben", message: "good evening" };
    this.#ask("gateway", this.#relay.gateway.port, "/v1/messages/send", body);
  }

  #ask(kind: SampleKind, port: number, path: string, body?: object): void {
    const at = performance.now();
    const samples = this.#samples;
    const refused = ask(port, path, this.#relay.headers("cora"), body).then(
      ({ status }) => (status < 300 ? undefined : String(status)),
      ({ message }: Error) => message,
    );
    const asked = refused.then((refused) => {
      const sample = { kind, at, ms: performance.now() - at };
      samples.push(refused === undefined ? sample : { ...sample, refused });
    });
    this.#requests.add(asked);
    void asked.then(() => this.#requests.delete(asked));
  }

  #next(of = 2): number {
    this.#turn += 1;
    return this.#turn % of;
  }
}

/** To the ledger. */
function connectionOf(who: number): string {
  return NAMES[who] as string;
}

const TIMEOUT_MS = 3000;

interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * One request on a connection of its own, as probes come; a body is JSON, and makes it a POST.
 * @throws Error when it is not answered within three seconds.
 */
export async function ask(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: object,
): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const json = body === undefined ? {} : { "content-type": "application/json" };
  const method = body === undefined ? "GET" : "POST";
  const options = { host: "127.0.0.1", port, path, method, headers: { ...headers, ...json }, agent: false };
  const asking = request(options, (answer) => {
    text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject);
  });
  const timer = setTimeout(() => asking.destroy(new Error("no answer")), TIMEOUT_MS);
  asking.on("error", reject);
  asking.end(body === undefined ? undefined : JSON.stringify(body));
  return await promise.finally(() => clearTimeout(timer));
}
