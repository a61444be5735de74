import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { PENDING } from "relay-protocol/contract/session.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { AgentSocket } from "../../support/agent.ts";
import { until } from "../../support/until.ts";
import { ask } from "./bystanders.ts";
import type { Deployment } from "./deployment.ts";
import { BOUNDS } from "./figures.ts";
import { ABSENT, type Attacker, addressOf, FEW_FILES, FORWARDED } from "./target.ts";

/** Attacks of a few bytes: what they would break is looked at itself. */

/** A change of the keys file is in force within so long. Source: docs/protocol.md#keys. */
const KEYS_WITHIN_MS = 5000;
const PRIMINGS = 50;
const HEALTH_EVERY_MS = 100;

/** A session that somebody else has pending at a target stays so, whatever others ask of that target. */
export const pendingOfAnother: Witness = async (relay) => {
  const cora = await relay.online(relay.connectors[1], "cora");
  const request = relay.envelope("cora", "session.request", { to: ABSENT, payload: { purpose: "to talk" } });
  const { session_id } = await cora.ask(request);
  return async () => {
    const status = await statusOf(relay, session_id);
    await cora.close();
    return { faults: isPending(status) ? [] : [`another's pending session is ${status}`] };
  };
};

/** A name with an escape, and then another one: the engine's parser may take the second for the first. */
export const escapedNames: Witness = async (relay) => async () => {
  const [dina, eli] = await pairOf(relay, "dina", "eli");
  const stranger = await relay.connect(relay.connectors[0]);
  const prime = { ...relay.envelope("dina", "message.send", { to: "agent://eli", payload: nameOf("\\") }), sig: "" };
  for (let n = 0; n < PRIMINGS; n += 1) {
    await ask(relay.gateway.port, "/api/self-test", { [FORWARDED]: addressOf(0, n) }, prime);
    stranger.send(prime);
  }
  await stranger.untilClosed();

  const faults: string[] = [];
  const envelope = () => relay.envelope("dina", "message.send", { to: "agent://eli", payload: nameOf("\n") });
  const { status } = await ask(relay.gateway.port, "/api/self-test", relay.headers(), envelope());
  if (status !== 200) faults.push(`a valid envelope failed the self-test with ${status}`);
  const sent = envelope();
  const { code } = await dina.ask(sent);
  if (code !== undefined) faults.push(`a valid envelope was refused with ${code}`);
  else await eli.delivered(sent.id);
  await Promise.all([dina.close(), eli.close()]);
  return { faults };
};

/** Who registered under a key that was replaced under the same id is let go. */
export const replacedKey: Witness = async (relay) => async () => {
  const finn = await relay.online(relay.connectors[0], "finn");
  await relay.replaceKeyOf("finn");
  const code = await finn.untilClosed(KEYS_WITHIN_MS).catch(() => undefined);
  await relay.restoreKeys();
  await finn.close();
  if (code === CLOSE_CODES.keyRevoked.code) return { faults: [] };
  return { faults: [code === undefined ? "the old key's connection keeps its agent" : `it was closed with ${code}`] };
};

/** A decision that is a replay of an earlier message decides nothing. */
export const replayedDecision: Witness = async (relay) => async () => {
  const [dina, eli] = await pairOf(relay, "dina", "eli");
  const request = relay.envelope("dina", "session.request", { to: "agent://eli", payload: { purpose: "to talk" } });
  const { session_id } = await dina.ask(request);
  const message = relay.envelope("eli", "message.send", { to: "agent://dina" });
  await eli.ask(message);
  const { id, ts } = message;
  await eli.ask(relay.envelope("eli", "session.approve", { to: "agent://dina", id, ts, payload: { session_id } }));
  const status = await statusOf(relay, session_id);
  await Promise.all([dina.close(), eli.close()]);
  return { faults: isPending(status) ? [] : [`the session is ${status}`] };
};

/** Which of two hosts counts is not for the relay to guess, nor for whatever stands before it. */
export const twoHosts: Witness = async (relay) => async () => {
  const answers = relay.services.flatMap(({ port }) =>
    ["GET /health HTTP/1.1\r\n", "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"].map(
      async (head) => {
        const socket = connect(port, "127.0.0.1");
        await once(socket, "connect");
        socket.end(`${head}Host: one\r\nHost: two\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n\r\n`);
        return (await text(socket)).split("\r\n", 1)[0] as string;
      },
    ),
  );
  const wrong = (await Promise.all(answers)).filter((line) => !line.startsWith("HTTP/1.1 400"));
  return { faults: [...new Set(wrong)].map((line) => `two Host fields are answered ${line}`) };
};
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";

/** Of ever more visitors the latest are kept, and all are counted. */
export const latestJourneys: Witness = async (relay) => async () => {
  const { body } = await ask(relay.reports.port, SURFACES.sessionJourneys.path, relay.headers());
  const { journeys, unique_sessions } = JSON.parse(body).totals;
  const isBounded = journeys === WINDOW_LIMITS.journeys && unique_sessions > journeys;
  return { faults: isBounded ? [] : [`${journeys} journeys are kept of ${unique_sessions} visitors`] };
};

/** A gateway with few file descriptors answers all the same. */
export const fewFiles: Witness = async (relay) => {
  let runs = true;
  let slowest = 0;
  let unanswered = 0;
  const watch = async () => {
    while (runs) {
      const since = performance.now();
      await ask(relay.smallGateway.port, "/health", relay.headers()).catch(() => {
        unanswered += 1;
      });
      slowest = Math.max(slowest, performance.now() - since);
      await delay(HEALTH_EVERY_MS);
    }
  };
  const watching = watch();
  return async () => {
    runs = false;
    await watching;
    const silent =
      unanswered === 0 ? [] : [`/health of the process with ${FEW_FILES} files: ${unanswered} × no answer`];
    const slow = slowest <= BOUNDS.healthMax ? [] : [`its slowest answer took ${slowest.toFixed(0)} ms`];
    return { faults: [...silent, ...slow] };
  };
};

async function pairOf(relay: Deployment, one: string, other: string) {
  return await Promise.all([relay.online(relay.connectors[0], one), relay.online(relay.connectors[1], other)]);
}

/** The shape in which the parser was found to err: the name that is escaped stands second. */
function nameOf(escaped: string): object {
  return { p: 1, [escaped]: 2 };
}

async function statusOf(relay: Deployment, sessionId: string): Promise<string> {
  const { body } = await ask(relay.gateway.port, `/sessions/${sessionId}`, relay.headers());
  return JSON.parse(body).status;
}

function isPending(status: string): boolean {
  return status === PENDING;
}

/** What came of what a witness looked at. */
interface Testimony {
  /** What must not be. */
  readonly faults: readonly string[];
  /** What else is worth telling. */
  readonly notes?: readonly string[];
}

/** Looks at what an attack does to one promise. It is called before the attack; what it returns, after it. */
type Witness = (relay: Deployment) => Promise<() => Promise<Testimony>>;

/** One attack; a line of the table. */
export interface Attack {
  readonly name: string;
  /** What the relay does about it. */
  readonly stoppedBy: string;
  /** The limits that it comes to: one that it does not reach says nothing about it. */
  readonly reaches?: readonly LimitName[];
  /** Longer than other attacks, where a time is what stops it. */
  readonly forMs?: number;
  /** Without one the attack is the witness's alone. */
  readonly attacker?: Attacker;
  readonly witness?: Witness;
  /** Refusals that bystanders may meet while it goes on: what they asked for, and its code. */
  readonly allows?: readonly string[];
}

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
