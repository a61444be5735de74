import type { AgentSocket, Frame } from "../../support/agent.ts";
import { until } from "../../support/until.ts";
import { ask } from "./support/ask.ts";
import type { Deployment } from "./deployment.ts";
import type { Sample, SampleKind } from "./samples.ts";

/** How often each is asked for, ms apart. No bystander comes near a limit of its own, all attacks long. */
const EVERY_MS = { message: 50, heartbeat: 200, session: 1300, health: 100, presence: 500, gateway: 2500 } as const;
const PRESENCE_PATH = "/api/onboarding/check-online?agent_id=agent://ben";
const ANSWERS_WITHIN_MS = 3000;
const NO_ANSWER = "no answer";

/** What was asked over a websocket and not answered so far. */
interface Asked {
  readonly kind: SampleKind;
  readonly at: number;
}

/**
 * Two agents, one on each connector, who exchange messages, negotiate sessions and send heartbeats, and whoever asks the
 * services over HTTP: none of them has a part in any attack.
 */
export class Bystanders {
  readonly #relay: Deployment;
  #pair: readonly AgentSocket[] = [];
  #samples: Sample[] = [];
  readonly #asked = new Map<string, Asked>();
  readonly #promised = new Set<string>();
  readonly #arrived = new Set<string>();
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
      message: () => this.#sendMessage(),
      heartbeat: () => this.#send(this.#next(), "heartbeat", "agent.heartbeat", {}),
      session: () => this.#requestSession(),
      health: () => this.#ask("health", this.#relay.services[this.#next(4)]?.port as number, "/health"),
      presence: () => this.#ask("presence", this.#relay.gateway.port, PRESENCE_PATH),
      gateway: () => this.#sendOverHttp(),
    } satisfies Record<SampleKind, () => void>;
    this.#timers = Object.entries(EVERY_MS).map(([kind, ms]) => setInterval(ask[kind as SampleKind], ms));
  }

  /** They ask no more. Resolves with all that was asked since the start, when it is answered or its time is over. */
  async stop(): Promise<{ readonly samples: readonly Sample[]; readonly lost: number }> {
    for (const timer of this.#timers) clearInterval(timer);
    const isLost = () => [...this.#promised].filter((id) => !this.#arrived.has(id)).length;
    const isSettled = () => this.#asked.size === 0 && isLost() === 0;
    await until("every bystander has its answers", isSettled, ANSWERS_WITHIN_MS).catch(() => {});
    await Promise.all(this.#requests);
    for (const asked of this.#asked.values()) this.#note(asked, NO_ANSWER);
    const result = { samples: this.#samples, lost: isLost() };
    this.#samples = [];
    for (const past of [this.#asked, this.#promised, this.#arrived]) past.clear();
    return result;
  }

  async leave(): Promise<void> {
    await Promise.all(this.#pair.map((socket) => socket.close()));
  }

  /** New connections for those that the last attack closed. */
  async #connect(): Promise<void> {
    const { connectors } = this.#relay;
    const names = ["ann", "ben"];
    this.#pair = await Promise.all(
      connectors.map(async (pod, n) => {
        const present = this.#pair[n];
        if (present !== undefined && present.closed === undefined) return present;
        const socket = await this.#relay.online(pod, names[n] as string);
        socket.socket.on("message", (data: Buffer) => this.#receive(n, JSON.parse(data.toString())));
        socket.socket.on("close", (code: number) => {
          this.#samples.push({ kind: "message", at: performance.now(), ms: 0, refused: `closed ${code}` });
        });
        return socket;
      }),
    );
  }

  #receive(who: number, { frame, envelope_id, code, envelope, session_id, target_delivery }: Frame): void {
    if (frame === "deliver") this.#delivered(who, envelope, session_id);
    const asked = this.#asked.get(envelope_id);
    if (asked === undefined) return;
    this.#asked.delete(envelope_id);
    this.#note(asked, code);
    if (target_delivery === undefined) return;
    if (target_delivery.can_deliver_realtime) this.#promised.add(envelope_id);
    else this.#note(asked, "not delivered");
  }

  #delivered(who: number, { id, type, from }: Frame, sessionId: string): void {
    this.#arrived.add(id);
    if (type !== "session.request") return;
    this.#send(who, "session", "session.approve", { to: from, payload: { session_id: sessionId } });
  }

  #sendMessage(): void {
    const who = this.#next();
    this.#send(who, "message", "message.send", { to: this.#other(who), payload: { message: "good morning" } });
  }

  #requestSession(): void {
    const who = this.#next();
    this.#send(who, "session", "session.request", { to: this.#other(who), payload: { purpose: "to talk" } });
  }

  #send(who: number, kind: SampleKind, type: string, fields: object): void {
    const socket = this.#pair[who];
    if (socket === undefined || socket.closed !== undefined) return;
    const envelope = this.#relay.envelope(who === 0 ? "ann" : "ben", type, { ...fields });
    this.#asked.set(envelope.id, { kind, at: performance.now() });
    socket.send(envelope);
  }

  #sendOverHttp(): void {
    const body = { from: "agent://cora", to: "agent://ben", message: "good evening" };
    this.#ask("gateway", this.#relay.gateway.port, "/v1/messages/send", body);
  }

  #ask(kind: SampleKind, port: number, path: string, body?: object): void {
    const at = performance.now();
    const refused = ask(port, path, this.#relay.headers("cora"), body).then(
      ({ status }) => (status < 300 ? undefined : String(status)),
      ({ message }: Error) => message,
    );
    const asked = refused.then((refused) => this.#note({ kind, at }, refused));
    this.#requests.add(asked);
    void asked.then(() => this.#requests.delete(asked));
  }

  #note({ kind, at }: Asked, refused: string | undefined): void {
    const sample = { kind, at, ms: performance.now() - at };
    this.#samples.push(refused === undefined ? sample : { ...sample, refused });
  }

  #other(who: number): string {
    return who === 0 ? "agent://ben" : "agent://ann";
  }

  #next(of = 2): number {
    this.#turn += 1;
    return this.#turn % of;
  }
}
