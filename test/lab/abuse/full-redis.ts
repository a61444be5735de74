import { setTimeout as delay } from "node:timers/promises";
import type { AgentSocket } from "../../support/agent.ts";
import { until } from "../../support/until.ts";
import { ask } from "./bystanders.ts";
import type { Deployment } from "./deployment.ts";
import type { Witness } from "./witnesses.ts";

/** A share of `maxmemory` above the three quarters from which Redis is short of memory, with room for those who are present. */
const SHORT = 0.85;
/** Far enough beyond, so that what clients give back meanwhile makes no room. */
const FULL = 1.5;
/** Services look once a second how full Redis is. */
const NOTICED_WITHIN_MS = 2500;
const BACK_WITHIN_MS = 5000;
const ASK_AGAIN_MS = 250;
const FULL_FOR_MS = 1000;

const TO = "agent://eli";
const PURPOSE = { purpose: "to talk" };
const CALLERS = ["cora", "dina", "finn", "gwen"];
const ACCEPTED = "accepted";
const OVER_CAPACITY = "over_capacity";
/** What gives way while Redis is short of memory. Source: docs/protocol.md#sharing-a-relay. */
const GIVES_WAY: readonly Asking[] = ["session", "new agent", "session over HTTP", "Idempotency-Key"];
/** What a full Redis may be answered with. */
const WHEN_FULL = [ACCEPTED, OVER_CAPACITY, "unavailable"];

type Asking = (typeof ASKED)[number];
const ASKED = [
  ...(["message", "heartbeat", "session", "present agent again", "new agent"] as const),
  ...(["message over HTTP", "session over HTTP", "Idempotency-Key", "feedback", "check-online"] as const),
] as const;

/** Redis has less and less room: who is refused what, and how soon all are served again. */
export const fullRedis: Witness = async (relay) => async () => {
  const { client } = relay.stage.view;
  const [, configured] = (await client.config("GET", "maxmemory")) as [string, string];
  const limitTo = async (share: number) => {
    const { redisBytes } = await relay.usage();
    await client.config("SET", "maxmemory", Math.ceil(redisBytes / share));
  };
  const askers = await Askers.start(relay);
  try {
    await limitTo(SHORT);
    await delay(NOTICED_WITHIN_MS);
    const short = await askers.ask();
    await limitTo(FULL);
    await delay(FULL_FOR_MS);
    const full = await askers.ask();

    await client.config("SET", "maxmemory", configured);
    const since = performance.now();
    const isBack = async () => {
      await delay(ASK_AGAIN_MS);
      return Object.values(await askers.ask()).every((answer) => answer === ACCEPTED);
    };
    const isLate = await until("all are served again", isBack, BACK_WITHIN_MS).then(
      () => false,
      () => true,
    );
    const backAfter = `all served again after ${(performance.now() - since).toFixed(0)} ms`;
    return {
      faults: [...wrongWhenShort(short), ...wrongWhenFull(full), ...(isLate ? ["not all are served again"] : [])],
      notes: [`three quarters full: ${told(short)}`, `full: ${told(full)}`, backAfter],
    };
  } finally {
    await client.config("SET", "maxmemory", configured);
    await askers.stop();
  }
};

type Answers = Readonly<Record<Asking, string>>;

/** Two who are present, one who is not, and API keys that take turns, so that none comes to its limit. */
class Askers {
  readonly #relay: Deployment;
  readonly #dina: AgentSocket;
  readonly #eli: AgentSocket;
  #turn = 0;

  private constructor(relay: Deployment, dina: AgentSocket, eli: AgentSocket) {
    this.#relay = relay;
    this.#dina = dina;
    this.#eli = eli;
  }

  static async start(relay: Deployment): Promise<Askers> {
    const [first, second] = relay.connectors;
    return new Askers(relay, await relay.online(first, "dina"), await relay.online(second, "eli"));
  }

  async stop(): Promise<void> {
    await Promise.all([this.#dina.close(), this.#eli.close()]);
  }

  /** What each asking is answered now. */
  async ask(): Promise<Answers> {
    this.#turn += 1;
    const caller = CALLERS[this.#turn % CALLERS.length] as string;
    const request = { from: `agent://${caller}`, to: TO };
    const message = { ...request, message: "good evening" };
    const once = { "idempotency-key": `ask-${this.#turn}` };
    const newcomer = await this.#relay.connect(this.#relay.connectors[0]);
    const answers = {
      message: await this.#overSocket(this.#dina, "dina", "message.send", { to: TO }),
      heartbeat: await this.#overSocket(this.#dina, "dina", "agent.heartbeat"),
      session: await this.#overSocket(this.#dina, "dina", "session.request", { to: TO, payload: PURPOSE }),
      "present agent again": await this.#overSocket(this.#eli, "eli", "agent.register"),
      "new agent": await this.#overSocket(newcomer, "gwen", "agent.register"),
      "message over HTTP": await this.#overHttp(caller, "/v1/messages/send", message),
      "session over HTTP": await this.#overHttp(caller, "/v1/sessions/request", { ...request, ...PURPOSE }),
      "Idempotency-Key": await this.#overHttp(caller, "/v1/messages/send", message, once),
      feedback: await this.#overHttp(caller, "/api/public/feedback", { sentiment: "helpful" }),
      "check-online": await this.#overHttp(caller, `/api/onboarding/check-online?agent_id=${TO}`),
    };
    await newcomer.close();
    return answers;
  }

  async #overSocket(socket: AgentSocket, name: string, type: string, fields: object = {}): Promise<string> {
    return (await socket.ask(this.#relay.envelope(name, type, { ...fields }))).code ?? ACCEPTED;
  }

  async #overHttp(name: string, path: string, body?: object, fields: Record<string, string> = {}): Promise<string> {
    const headers = { ...this.#relay.headers(name), ...fields };
    const answer = await ask(this.#relay.gateway.port, path, headers, body).catch(() => undefined);
    if (answer === undefined) return "no answer";
    return answer.status < 300 ? ACCEPTED : JSON.parse(answer.body).code;
  }
}

function wrongWhenShort(answers: Answers): string[] {
  return ASKED.flatMap((asking) => {
    const expected = GIVES_WAY.includes(asking) ? OVER_CAPACITY : ACCEPTED;
    return answers[asking] === expected ? [] : [`three quarters full: ${asking} ${answers[asking]}`];
  });
}

function wrongWhenFull(answers: Answers): string[] {
  return ASKED.flatMap((asking) => (WHEN_FULL.includes(answers[asking]) ? [] : [`full: ${asking} ${answers[asking]}`]));
}

function told(answers: Answers): string {
  return ASKED.map((asking) => `${asking} ${answers[asking]}`).join(", ");
}
