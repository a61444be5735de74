import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Answer, HttpClient } from "../support/http.ts";
import type { ReturningAgent } from "../support/returning-agent.ts";
import { until } from "../support/until.ts";
import { type Fleet, nameOf } from "./fleet.ts";

/** Callers of the gateway, who name their requests by an Idempotency-Key: the ledger has all of them too. */

/** An API key has few requests a minute. */
const TRY_AGAIN_MS = 400;
const MOST_TRIES = 60;
/** The gateway names its envelopes itself. The ledger calls them by the text that is in them, which begins so. */
const NAME = "by gateway ";

type Party = Pick<ReturningAgent, "id">;

/** Who sends to whom. */
interface Parties {
  readonly from: Party;
  readonly to: Party;
}

type Gateways = () => readonly { readonly url: string }[];

export function isByGateway(id: string): boolean {
  return id.startsWith(NAME);
}

/** One agent after the other, to the next. */
export function parties({ agents }: Fleet, n: number): Parties {
  const [from, to] = [agents[n % agents.length], agents[(n + 1) % agents.length]];
  return { from: from as ReturningAgent, to: to as ReturningAgent };
}

/** What the gateway makes of a request: which path, and which member holds the text. */
const KINDS = {
  "message.send": { path: "/v1/messages/send", member: "message" },
  "session.request": { path: "/v1/sessions/request", member: "purpose" },
} as const;

/** A message, or a request for a session, under one Idempotency-Key. */
export class KeyedSend {
  readonly #fleet: Fleet;
  readonly #id = `${NAME}${randomUUID()}`;
  readonly #parties: Parties;
  readonly #type: keyof typeof KINDS;
  #attempts = 0;
  #isAccepted = false;

  constructor(fleet: Fleet, parties: Parties, type: keyof typeof KINDS = "message.send") {
    this.#fleet = fleet;
    this.#parties = parties;
    this.#type = type;
  }

  /** Sends it, the first time or again. Undefined when no answer came. @param gateway its URL. */
  async attempt(gateway: string): Promise<Answer | undefined> {
    const { ledger, relay } = this.#fleet;
    const { from, to } = this.#parties;
    const { path, member } = KINDS[this.#type];
    const http = new HttpClient({
      "x-api-key": relay.keys.apiKeys.get(nameOf(from)) as string,
      "idempotency-key": this.#id.slice(NAME.length),
    });
    // Each is a connection of its own to the ledger: no order is promised here.
    const connection = `${this.#id} ${this.#attempts}`;
    this.#attempts += 1;
    ledger.sent({ id: this.#id, type: this.#type, from: from.id, to: to.id }, connection);
    const body = { from: from.id, to: to.id, [member]: this.#id };
    const answer = await http.post(gateway + path, body).catch(() => undefined);
    if (answer === undefined) return undefined;
    const at = performance.now();
    if (answer.status !== 202) {
      ledger.answered(this.#id, connection, { at, accepted: false, code: answer.body.code });
      return answer;
    }
    // What a repeat gets is the first answer again, and so its promise where the first was lost.
    const duplicate = this.#isAccepted && answer.headers.get("idempotent-replayed") === "true";
    const deliverable = answer.body.target_delivery.can_deliver_realtime;
    ledger.answered(this.#id, connection, { at, accepted: true, duplicate, deliverable });
    this.#isAccepted = true;
    return answer;
  }

  /**
   * Sends the same, at the next gateway each time, until it is accepted.
   * @param gateways asked for each attempt. @param andAgain once more after that, which must not deliver it again.
   */
  async untilAccepted(
    gateways: Gateways,
    { first = 0, andAgain = false }: { readonly first?: number; readonly andAgain?: boolean } = {},
  ): Promise<void> {
    const next = async () => {
      const open = gateways();
      await this.attempt(open[(first + this.#attempts) % open.length]?.url as string);
      if (!this.#isAccepted || andAgain) await delay(TRY_AGAIN_MS);
    };
    while (!this.#isAccepted) {
      if (this.#attempts === MOST_TRIES) throw new Error("A request was never accepted.");
      await next();
    }
    if (andAgain) await next();
  }
}

/** Callers who send all the time, each message until it is accepted, and once more. */
export class KeyedCallers {
  /** When each was served last. */
  readonly #servedAt: number[];
  readonly #calls: Promise<unknown>;
  #isOver = false;

  /** @param next whose turn it is, for the n-th message of a caller. */
  constructor(fleet: Fleet, count: number, gateways: Gateways, next: (caller: number, n: number) => Parties) {
    this.#servedAt = Array(count).fill(0);
    const call = async (_: number, caller: number) => {
      for (let n = 0; !this.#isOver; n += 1) {
        await new KeyedSend(fleet, next(caller, n)).untilAccepted(gateways, { first: caller, andAgain: true });
        this.#servedAt[caller] = performance.now();
      }
    };
    this.#calls = Promise.all(this.#servedAt.map(call));
    this.#calls.catch(() => {});
  }

  /** Resolves when each was served once more since then, with the time at which the last one was. */
  async served(since = performance.now()): Promise<number> {
    const served = until("callers are served", () => this.#servedAt.every((at) => at > since));
    await Promise.race([served, this.#calls]);
    return Math.max(...this.#servedAt);
  }

  /** Resolves when what is under way is accepted. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#calls;
  }
}
