import { setTimeout as delay } from "node:timers/promises";
import { GUIDE_SURFACES, REPORT_SURFACES } from "relay-protocol/contract/report-surfaces.ts";
import type { Fields, Frame } from "../../support/agent.ts";
import { type Answer, HttpClient } from "../../support/http.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { KeyedSend } from "../keyed-sends.ts";
import { GATEWAY, REPORTING, ROLLED, type SoakFleet, STEADY } from "./fleet.ts";
import { AWAY_MS, type CALLS, TAKEOVER_SHARE } from "./verdict.ts";

/** What comes to the relay in a soak: agents that talk and move, and callers over HTTP. */

const TICK_MS = 20;

/** Does things at steady rates, however long each of them takes, until it is stopped. */
export class Pace {
  readonly #timers: NodeJS.Timeout[] = [];

  every(perSecond: number, act: () => void): void {
    let done = 0;
    const startedAt = performance.now();
    const catchUp = () => {
      const due = ((performance.now() - startedAt) / 1000) * perSecond;
      for (; done < due; done += 1) act();
    };
    this.#timers.push(setInterval(catchUp, TICK_MS));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}

/** One of a list by chance; undefined when it is empty. */
function anyOf<T>(list: readonly T[]): T | undefined {
  return list[Math.floor(Math.random() * list.length)];
}

interface Member {
  readonly agent: ReturningAgent;
  pod: typeof STEADY | typeof ROLLED;
  moves: boolean;
}

const STARTS_AT_ONCE = 50;
const TRIES = 20;
const APPROVED_SHARE = 0.8;

/** The agents of a soak, one a connection, half of them on each pod. */
export class Population {
  readonly #fleet: SoakFleet;
  readonly #members: readonly Member[];
  readonly #moves = new Set<Promise<void>>();
  moved = 0;

  constructor(fleet: SoakFleet, names: readonly string[]) {
    this.#fleet = fleet;
    this.#members = names.map((name, n) => this.#memberOf(name, n % 2 === 0 ? STEADY : ROLLED));
  }

  async start(): Promise<void> {
    this.#fleet.agents.push(...this.#members.map(({ agent }) => agent));
    for (let n = 0; n < this.#members.length; n += STARTS_AT_ONCE) {
      await Promise.all(this.#members.slice(n, n + STARTS_AT_ONCE).map(({ agent }) => agent.start()));
    }
  }

  /** Resolves when nobody is under way any more. */
  async settle(): Promise<void> {
    await Promise.all(this.#moves);
  }

  get online(): number {
    return this.#members.filter(({ agent }) => agent.isOnline).length;
  }

  /** One envelope between two agents on different pods; the target may be away. */
  sendOne(type: string, fields: Fields): void {
    const sender = this.#anyone(({ agent, moves }) => agent.isOnline && !moves);
    const target = sender && this.#anyone(({ pod }) => pod !== sender.pod);
    if (sender === undefined || target === undefined) return;
    sender.agent.send(type, { to: target.agent.id, ...fields });
  }

  /** One agent leaves its connection, for another, on the pod that is the luck of the draw. */
  moveOne(): void {
    const member = this.#anyone(({ agent, moves }) => agent.isOnline && !moves);
    if (member === undefined) return;
    const move = this.#move(member).finally(() => this.#moves.delete(move));
    this.#moves.add(move);
  }

  async #move(member: Member): Promise<void> {
    member.moves = true;
    const takesOver = Math.random() < TAKEOVER_SHARE;
    if (!takesOver) {
      await member.agent.stop();
      await delay(Math.random() * 2 * AWAY_MS);
    }
    member.pod = anyOf([STEADY, ROLLED]) as Member["pod"];
    // It goes on trying when it takes longer; who is online at the end is judged.
    await member.agent.start().catch(() => {});
    member.moves = false;
    this.moved += 1;
  }

  #anyone(holds: (member: Member) => boolean): Member | undefined {
    for (let n = 0; n < TRIES; n += 1) {
      const member = anyOf(this.#members) as Member;
      if (holds(member)) return member;
    }
    return undefined;
  }

  #memberOf(name: string, pod: Member["pod"]): Member {
    const url = () => `${this.#fleet.url(member.pod).replace("http", "ws")}/ws`;
    const agent: ReturningAgent = this.#fleet.agent(name, url, (frame) => decide(agent, frame));
    const member: Member = { pod, agent, moves: false };
    return member;
  }
}

/** Who is asked for a session answers. */
function decide(agent: ReturningAgent, { frame, envelope, session_id }: Frame): void {
  if (frame !== "deliver" || envelope.type !== "session.request" || !agent.isOnline) return;
  const type = Math.random() < APPROVED_SHARE ? "session.approve" : "session.reject";
  agent.send(type, { to: envelope.from, payload: { session_id } });
}

const REPORT_PATHS = Object.values({ ...REPORT_SURFACES, ...GUIDE_SURFACES }).map(({ path }) => path);
const CHECK_ONLINE = "/api/onboarding/check-online?agent_id=";
const FEEDBACK = [
  { surface: "check-online", sentiment: "positive", category: "clarity", message: "clear" },
  { surface: "made up", sentiment: "made up", category: "made up", message: "made up" },
];
const SESSIONS_KEPT = 100;
type Call = keyof typeof CALLS;

/** Those who come over HTTP: senders with API keys, people and programs that look. */
export class Callers {
  /** Answers by what was asked and how it was answered. */
  readonly answers = new Map<string, number>();
  calls = 0;
  /** Answered with 503, as is due when Redis does not answer in time. */
  unavailable = 0;
  /** Answered with any other status than the one that was due, or not at all. */
  failures = 0;
  readonly #fleet: SoakFleet;
  readonly #names: readonly string[];
  readonly #sessionIds: string[] = [];
  #sent = 0;

  constructor(fleet: SoakFleet, names: readonly string[]) {
    this.#fleet = fleet;
    this.#names = names;
  }

  /** @param rates calls a second. */
  start(pace: Pace, rates: Readonly<Partial<Record<Call, number>>>): void {
    const acts: Readonly<Record<Call, () => Promise<void>>> = {
      gatewayMessages: () => this.#sendMessage(),
      gatewaySessionRequests: () => this.#requestSession(),
      sessionLookUps: () => this.#lookUpSession(),
      presenceLookUps: () => this.#get("presence look-up", GATEWAY, `${CHECK_ONLINE}agent://${anyOf(this.#names)}`),
      feedback: () => this.#giveFeedback(),
      reports: () => this.#get("report", REPORTING, anyOf(REPORT_PATHS) as string),
    };
    for (const [call, perSecond] of Object.entries(rates) as [Call, number][]) {
      pace.every(perSecond, () => void acts[call]().catch(() => (this.failures += 1)));
    }
  }

  /** Every second one twice under one idempotency key, of which the second is answered like the first. */
  async #sendMessage(): Promise<void> {
    const isRepeated = this.#sent++ % 2 === 0;
    const send = new KeyedSend(this.#fleet, this.#anyTwo());
    const attempt = async () => this.#counted("message.send", 202, await send.attempt(this.#fleet.url(GATEWAY)));
    const first = await attempt();
    const second = isRepeated && first !== undefined ? await attempt() : undefined;
    if (second !== undefined && second.envelope_id !== first.envelope_id) this.failures += 1;
  }

  async #requestSession(): Promise<void> {
    const send = new KeyedSend(this.#fleet, this.#anyTwo(), "session.request");
    const answer = this.#counted("session.request", 202, await send.attempt(this.#fleet.url(GATEWAY)));
    if (answer !== undefined) this.#sessionIds.push(answer.session_id);
    if (this.#sessionIds.length > SESSIONS_KEPT) this.#sessionIds.shift();
  }

  async #lookUpSession(): Promise<void> {
    const id = anyOf(this.#sessionIds);
    if (id !== undefined) await this.#get("session look-up", GATEWAY, `/sessions/${id}`);
  }

  async #giveFeedback(): Promise<void> {
    const url = `${this.#fleet.url(GATEWAY)}/api/public/feedback`;
    this.#counted("feedback", 202, await new HttpClient().post(url, anyOf(FEEDBACK)));
  }

  async #get(what: string, role: typeof GATEWAY | typeof REPORTING, path: string): Promise<void> {
    this.#counted(what, 200, await new HttpClient().get(this.#fleet.url(role) + path));
  }

  #anyTwo() {
    const from = anyOf(this.#names);
    const to = anyOf(this.#names.filter((name) => name !== from));
    return { from: { id: `agent://${from}` }, to: { id: `agent://${to}` } };
  }

  /** Returns the body of an answer that was due. */
  #counted(what: string, due: number, answer: Answer | undefined): Answer["body"] | undefined {
    const outcome = `${what} ${answer?.status ?? "no answer"}`;
    this.answers.set(outcome, (this.answers.get(outcome) ?? 0) + 1);
    this.calls += 1;
    if (answer?.status === due) return answer.body;
    if (answer?.status === 503) this.unavailable += 1;
    else this.failures += 1;
    return undefined;
  }
}
