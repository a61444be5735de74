import { setTimeout as delay } from "node:timers/promises";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Fields, Frame } from "../../support/agent.ts";
import type { Ledger } from "../../support/ledger.ts";
import { ReturningAgent } from "../../support/returning-agent.ts";
import { type Fleet, ROLLED, STEADY } from "./fleet.ts";
import { anyOf } from "./pace.ts";
import { AWAY_MS, TAKEOVER_SHARE } from "./plan.ts";

interface Member {
  readonly name: string;
  readonly agent: ReturningAgent;
  pod: typeof STEADY | typeof ROLLED;
  moves: boolean;
}

const STARTS_AT_ONCE = 50;
const TRIES = 20;
const APPROVED_SHARE = 0.8;

/** The agents of a soak, one a connection, half of them on each pod. */
export class Population {
  readonly #fleet: Fleet;
  readonly #ledger: Ledger;
  readonly #names: readonly string[];
  #members: readonly Member[] = [];
  readonly #moves = new Set<Promise<void>>();
  moved = 0;

  constructor(fleet: Fleet, names: readonly string[], ledger: Ledger) {
    this.#fleet = fleet;
    this.#ledger = ledger;
    this.#names = names;
  }

  async start(): Promise<void> {
    this.#members = this.#names.map((name, n) => this.#memberOf(name, n % 2 === 0 ? STEADY : ROLLED));
    for (let n = 0; n < this.#members.length; n += STARTS_AT_ONCE) {
      await Promise.all(this.#members.slice(n, n + STARTS_AT_ONCE).map(({ agent }) => agent.start()));
    }
  }

  /** Resolves when nobody is under way any more. */
  async settle(): Promise<void> {
    await Promise.all(this.#moves);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map(({ agent }) => agent.stop()));
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

  /** Two different names. */
  anyTwo(): [string, string] {
    const from = anyOf(this.#members) as Member;
    return [from.name, (this.#anyone((member) => member !== from) as Member).name];
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
    const key = this.#fleet.relay.keys.agents.get(name);
    if (key === undefined) throw new Error(`${name} has no key.`);
    const agent: ReturningAgent = new ReturningAgent({
      url: () => `${this.#fleet.url(member.pod).replace("http", "ws")}/ws`,
      id: `agent://${name}`,
      key,
      heartbeatMs: CONNECTION_LIMITS.heartbeatIntervalMs,
      ledger: this.#ledger,
      received: (frame) => decide(agent, frame),
    });
    const member: Member = { name, pod, agent, moves: false };
    return member;
  }
}

/** Who is asked for a session answers. */
function decide(agent: ReturningAgent, { frame, envelope, session_id }: Frame): void {
  if (frame !== "deliver" || envelope.type !== "session.request" || !agent.isOnline) return;
  const type = Math.random() < APPROVED_SHARE ? "session.approve" : "session.reject";
  agent.send(type, { to: envelope.from, payload: { session_id } });
}
