import { GUIDE_SURFACES, REPORT_SURFACES } from "relay-protocol/contract/report-surfaces.ts";
import type { Ledger } from "../../support/ledger.ts";
import { type Fleet, GATEWAY, REPORTING } from "./fleet.ts";
import { anyOf, type Pace } from "./pace.ts";
import { RATES } from "./plan.ts";
import type { Population } from "./population.ts";

const REPORT_PATHS = Object.values({ ...REPORT_SURFACES, ...GUIDE_SURFACES }).map(({ path }) => path);
const FEEDBACK = [
  { surface: "check-online", sentiment: "positive", category: "clarity", message: "clear" },
  { surface: "made up", sentiment: "made up", category: "made up", message: "made up" },
];

/** Those who come over HTTP: senders with API keys, people and programs that look. */
export class Callers {
  /** Answers by what was asked and how it was answered. */
  readonly answers = new Map<string, number>();
  calls = 0;
  /** Answered with 503, as is due when Redis does not answer in time. */
  unavailable = 0;
  /** Answered with any other status than the one that was due, or not at all. */
  failures = 0;
  readonly #fleet: Fleet;
  readonly #population: Population;
  readonly #ledger: Ledger;
  #sessionIds: string[] = [];
  #serial = 0;

  constructor(fleet: Fleet, population: Population, ledger: Ledger) {
    this.#fleet = fleet;
    this.#population = population;
    this.#ledger = ledger;
  }

  start(pace: Pace): void {
    const rated: readonly [number, () => Promise<void>][] = [
      [RATES.gatewayMessages, () => this.#sendMessage()],
      [RATES.gatewaySessionRequests, () => this.#requestSession()],
      [RATES.sessionLookUps, () => this.#lookUpSession()],
      [RATES.presenceLookUps, () => this.#lookUpPresence()],
      [RATES.feedback, () => this.#giveFeedback()],
      [RATES.reports, () => this.#readReport()],
    ];
    for (const [perSecond, call] of rated) pace.every(perSecond, () => void call().catch(() => (this.failures += 1)));
  }

  /** Every second one twice under one idempotency key, of which the second is answered like the first. */
  async #sendMessage(): Promise<void> {
    const send = this.#sending("message.send", "message", "/v1/messages/send");
    const isRepeated = this.#serial % 2 === 0;
    const first = await send(false);
    const second = isRepeated && first !== undefined ? await send(true) : undefined;
    if (second !== undefined && second.envelope_id !== first.envelope_id) this.failures += 1;
  }

  async #requestSession(): Promise<void> {
    const answer = await this.#sending("session.request", "purpose", "/v1/sessions/request")(false);
    if (answer !== undefined) this.#sessionIds = [...this.#sessionIds.slice(-99), answer.session_id];
  }

  /** The gateway gives the envelope its id; the ledger knows it by the text that is in it. */
  #sending(type: string, field: "message" | "purpose", path: string) {
    const [from, to] = this.#population.anyTwo().map((name) => `agent://${name}`) as [string, string];
    this.#serial += 1;
    const text = `soaked ${this.#serial}`;
    const headers = { ...this.#keyOf(from), "idempotency-key": text.replace(" ", "-") };
    return async (isRepeat: boolean) => {
      this.#ledger.sent({ id: text, type, from, to }, text);
      const answer = await this.#post(type, path, { from, to, [field]: text }, 202, headers);
      if (answer === undefined) return undefined;
      const deliverable = answer.target_delivery.can_deliver_realtime;
      this.#ledger.answered(text, text, { at: performance.now(), accepted: true, duplicate: isRepeat, deliverable });
      return answer;
    };
  }

  async #lookUpSession(): Promise<void> {
    const id = anyOf(this.#sessionIds);
    if (id !== undefined) await this.#get("session look-up", GATEWAY, `/sessions/${id}`);
  }

  async #lookUpPresence(): Promise<void> {
    const [name] = this.#population.anyTwo();
    await this.#get("presence look-up", GATEWAY, `/api/onboarding/check-online?agent_id=agent://${name}`);
  }

  async #giveFeedback(): Promise<void> {
    await this.#post("feedback", "/api/public/feedback", anyOf(FEEDBACK), 202);
  }

  async #readReport(): Promise<void> {
    await this.#get("report", REPORTING, anyOf(REPORT_PATHS) as string);
  }

  #keyOf(agent: string): Record<string, string> {
    return { "x-api-key": this.#fleet.relay.keys.apiKeys.get(agent.slice("agent://".length)) as string };
  }

  async #post(what: string, path: string, body: unknown, due: number, headers: Record<string, string> = {}) {
    return await this.#call(what, `${this.#fleet.url(GATEWAY)}${path}`, due, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  }

  async #get(what: string, role: typeof GATEWAY | typeof REPORTING, path: string) {
    return await this.#call(what, `${this.#fleet.url(role)}${path}`, 200, {});
  }

  // biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type yet.
  async #call(what: string, url: string, due: number, init: RequestInit): Promise<any> {
    const response = await fetch(url, init);
    const body = await response.json();
    const outcome = `${what} ${response.status}`;
    this.answers.set(outcome, (this.answers.get(outcome) ?? 0) + 1);
    this.calls += 1;
    if (response.status === due) return body;
    if (response.status === 503) this.unavailable += 1;
    else this.failures += 1;
    return undefined;
  }
}
