import { setTimeout as delay } from "node:timers/promises";
import { type Frame, signed } from "../../support/agent.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import { type Act, FORGERIES, type Forgery } from "./actions.ts";
import { type Fault, inject, isFault } from "../faults.ts";
import { GatewaySender } from "./gateway-sender.ts";
import type { RoamingFleet } from "./roaming-fleet.ts";

/** What a forged envelope must be answered with on the connection that it was sent on. */
export interface Forged {
  readonly id: string;
  readonly connection: string;
  readonly code: string;
}

const REMEMBERED = 100;

/** Does on the fleet what the actions say; what cannot be done at the moment is left out. */
export class Driver {
  readonly forged: Forged[] = [];
  readonly gateway: GatewaySender;
  readonly #fleet: RoamingFleet;
  /** The last envelopes of each agent. */
  readonly #made: Frame[][];
  readonly #moving = new Set<ReturningAgent>();
  readonly #underWay = new Set<Promise<void>>();
  #fault: Promise<void> = Promise.resolve();
  /** The number of the connector that stands still. */
  #frozen: number | undefined;

  constructor(fleet: RoamingFleet, gatewayUrl: string) {
    this.#fleet = fleet;
    this.gateway = new GatewaySender(fleet, gatewayUrl);
    this.#made = fleet.homes.map(() => []);
  }

  /** Resolves when the act has begun; a fault, when the one before it is over. */
  async do(act: Act): Promise<void> {
    if (isFault(act)) {
      await this.#fault;
      if (act.act === "freeze") this.#frozen = act.connector;
      this.#fault = inject(this.#fleet, act as Fault).finally(() => {
        this.#frozen = undefined;
      });
      this.#fault.catch(() => {});
    } else this.#act(act);
  }

  /** Resolves when faults, moves and calls are over. @throws Error when a fault could not be injected. */
  async settle(): Promise<void> {
    await this.#fault;
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #act(act: Exclude<Act, Fault>): void {
    switch (act.act) {
      case "message":
        this.#send(act.agent, "message.send", { to: this.#agent(act.to).id, payload: { message: "random" } });
        break;
      case "heartbeat":
        this.#send(act.agent, "agent.heartbeat", {});
        break;
      case "request":
        this.#send(act.agent, "session.request", { to: this.#agent(act.to).id, payload: { purpose: "random" } });
        break;
      case "decide":
        this.#decide(act.agent, act.approve);
        break;
      case "repeat":
        this.#sendMade(act.agent, this.#made[act.agent]?.at(-1 - act.back));
        break;
      case "replay":
        this.#replay(act.agent, act.by, act.back);
        break;
      case "forge":
        this.#forge(act.agent, act.as, act.how);
        break;
      case "gateway":
        this.#track(this.gateway.send(act.agent, this.#agent(act.to).id, act.twice));
        break;
      case "takeover":
        this.#move(act.agent, async (agent) => {
          this.#fleet.homes[act.agent] = act.connector;
          await agent.start();
        });
        break;
      case "leave":
        if (this.#isOnFrozen(act.agent)) return;
        this.#move(act.agent, async (agent) => {
          await agent.stop();
          await delay(act.forMs);
          await agent.start();
        });
        break;
      case "flushScripts":
        this.#track(this.#fleet.stage.flushScripts());
        break;
      case "loseReply":
        void this.#fleet.connectors[act.connector]?.redis.loseReplyTo('"message.send"');
    }
  }

  #send(n: number, type: string, fields: object): void {
    const agent = this.#agent(n);
    if (!agent.isOnline) return;
    const made = this.#made[n] as Frame[];
    made.push(agent.send(type, { ...fields }));
    if (made.length > REMEMBERED) made.shift();
  }

  #sendMade(n: number, envelope: Frame | undefined): void {
    const agent = this.#agent(n);
    if (envelope !== undefined && agent.isOnline) agent.sendAgain(envelope);
  }

  #decide(n: number, approve: boolean): void {
    const asked = this.#agent(n).isOnline ? this.#fleet.asked[n]?.next() : undefined;
    if (asked === undefined) return;
    const { session_id, envelope } = asked;
    this.#send(n, approve ? "session.approve" : "session.reject", { to: envelope.from, payload: { session_id } });
  }

  #replay(n: number, by: number, back: number): void {
    const published = this.#made[n]?.filter(({ to }) => to !== undefined);
    const envelope = published?.at(-1 - back);
    if (envelope !== undefined) this.#sendForged(by, envelope, "not_registered");
  }

  #forge(n: number, as: number, how: Forgery): void {
    const { keyId } = this.#fleet.keyOf(as);
    const own = this.#fleet.keyOf(n);
    const message = { type: "message.send", payload: { message: "forged" } };
    const inOwnName = { ...message, from: this.#agent(n).id, to: this.#agent(as).id };
    const inAnothers = { ...message, from: this.#agent(as).id, to: this.#agent(n).id };
    const make: Readonly<Record<Forgery, () => Frame>> = {
      from: () => signed(own, inAnothers),
      key: () => signed({ ...own, keyId }, inAnothers),
      content: () => ({ ...signed(own, inOwnName), payload: { message: "changed" } }),
      unknown: () => signed({ ...own, keyId: "nobody" }, inOwnName),
    };
    this.#sendForged(n, make[how](), FORGERIES[how]);
  }

  #sendForged(n: number, envelope: Frame, code: string): void {
    const agent = this.#agent(n);
    if (!agent.isOnline) return;
    this.forged.push({ id: envelope.id, connection: agent.connection, code });
    agent.sendAgain(envelope);
  }

  /** An agent that does not come back in time goes on trying; whether all are back is judged in the end. */
  #move(n: number, way: (agent: ReturningAgent) => Promise<unknown>): void {
    const agent = this.#agent(n);
    if (this.#moving.has(agent) || !agent.isOnline) return;
    this.#moving.add(agent);
    this.#fleet.moves(agent);
    const done = () => {
      this.#moving.delete(agent);
      this.#fleet.moves(agent);
    };
    this.#track(way(agent).then(done, done));
  }

  /** Who leaves a connector that stands still loses all that was promised since, also what was acked long before. */
  #isOnFrozen(n: number): boolean {
    return this.#frozen !== undefined && this.#fleet.connectors[this.#frozen]?.websocketUrl === this.#agent(n).url;
  }

  #track(work: Promise<void>): void {
    const tracked: Promise<void> = work.catch(() => {}).finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }

  #agent(n: number): ReturningAgent {
    return this.#fleet.agents[n] as ReturningAgent;
  }
}
