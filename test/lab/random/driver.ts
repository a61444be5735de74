import { setTimeout as delay } from "node:timers/promises";
import { type Frame, signed } from "../../support/agent.ts";
import { GuardedRelay } from "../../support/guarded-redis.ts";
import type { ReturningAgent } from "../../support/returning-agent.ts";
import {
  cut,
  endConnector,
  failOver,
  freeze,
  hangPrimary,
  hangRedis,
  killConnector,
  loseShard,
  moveSlot,
  otherPrimary,
  promote,
  restartRedis,
  shardOf,
  slow,
} from "../faults.ts";
import {
  type ClusterFleet,
  ClusterStage,
  Fleet,
  type FleetPod,
  nameOf,
  type SingleFleet,
  SingleStage,
  slotOfAgent,
} from "../fleet.ts";
import { KeyedSend } from "../keyed-sends.ts";
import { type Act, AGENTS, CONNECTORS, type Fault, FORGERIES, type Forgery, isFault } from "./actions.ts";

/** Half of the agents sign with Ed25519, half with HMAC. */
const NAMES = Array.from({ length: AGENTS }, (_, n) => `agent-${n}${n % 2 === 0 ? "" : "-hmac"}`);
/** After this an agent's former connection has been closed, and has nothing under way. */
const MOVING_MS = 2000;
const SLOW_MS = [20, 200] as const;
/** For so long nobody may know that Redis has ended. */
const NOTICED_MS = 100;

/** A fleet whose agents move between connectors, and remember what they were asked for. */
export class RoamingFleet extends Fleet<SingleStage | ClusterStage> {
  /** The connector, by its number, that each agent goes to when it next connects. */
  readonly homes: number[] = NAMES.map((_, n) => n % CONNECTORS);
  readonly asked: OpenRequests[] = NAMES.map(() => new OpenRequests());
  readonly #movedAt = new Map<ReturningAgent, number>();

  /** @param onCluster over a Redis Cluster, else over one Redis. */
  constructor(onCluster: boolean) {
    const stage = onCluster ? new ClusterStage(NAMES) : new SingleStage(new GuardedRelay(...NAMES));
    super(stage, { connectors: CONNECTORS });
  }

  /** The agent may have two connections for a moment. */
  moves(agent: ReturningAgent): void {
    this.#movedAt.set(agent, performance.now());
  }

  /** Those that just leave it included. */
  override agentsOf(pod: FleetPod): ReturningAgent[] {
    const since = performance.now() - MOVING_MS;
    const moved = (agent: ReturningAgent) => (this.#movedAt.get(agent) ?? Number.NEGATIVE_INFINITY) > since;
    return this.agents.filter((agent) => agent.url === pod.websocketUrl || !agent.isOnline || moved(agent));
  }

  override agent(name: string): ReturningAgent {
    const n = NAMES.indexOf(name);
    const url = () => (this.connectors[this.homes[n] as number] as FleetPod).websocketUrl;
    return super.agent(name, url, (frame) => {
      if (frame.frame === "deliver" && frame.envelope.type === "session.request") this.asked[n]?.add(frame);
    });
  }
}

/**
 * Session requests that an agent has not decided. Each session is decided once: over the loss of a window a request may
 * be delivered again, as the same session, and a second decision of it would rightly be refused.
 */
export class OpenRequests {
  readonly #waiting: Frame[] = [];
  readonly #known = new Set<string>();

  /** @param delivery of a session.request. */
  add(delivery: Frame): void {
    if (this.#known.has(delivery.session_id)) return;
    this.#known.add(delivery.session_id);
    this.#waiting.push(delivery);
  }

  /** The delivery that has waited longest, to be decided now. */
  next(): Frame | undefined {
    return this.#waiting.shift();
  }
}

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
  readonly #fleet: RoamingFleet;
  /** The last envelopes of each agent. */
  readonly #made: Frame[][];
  readonly #moving = new Set<ReturningAgent>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #gateway: FleetPod;
  #fault: Promise<void> = Promise.resolve();
  /** The number of the connector that stands still. */
  #frozen: number | undefined;

  constructor(fleet: RoamingFleet, gateway: FleetPod) {
    this.#fleet = fleet;
    this.#gateway = gateway;
    this.#made = fleet.homes.map(() => []);
  }

  /** Resolves when the act has begun; a fault, when the one before it is over. */
  async do(act: Act): Promise<void> {
    if (isFault(act)) {
      await this.#fault;
      if (act.act === "freeze") this.#frozen = act.connector;
      this.#fault = inject(this.#fleet, act).finally(() => {
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
        this.#track(
          new KeyedSend(this.#fleet, { from: this.#agent(act.agent), to: this.#agent(act.to) }).untilAccepted(
            () => [this.#gateway],
            { andAgain: act.twice },
          ),
        );
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
    const { keyId } = this.#fleet.keyOf(nameOf(this.#agent(as)));
    const own = this.#fleet.keyOf(nameOf(this.#agent(n)));
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

/** Begins a fault, and resolves when it is over. */
async function inject(fleet: RoamingFleet, fault: Fault): Promise<void> {
  const forMs = () => delay("forMs" in fault ? fault.forMs : 0);
  if ("agent" in fault) return await injectIntoCluster(fleet as unknown as ClusterFleet, fault, forMs);
  const single = fleet as unknown as SingleFleet;
  if (fault.act === "hangRedis") return await hangRedis(single.stage, forMs);
  if (fault.act === "restartRedis") return await restartRedis(single, () => delay(NOTICED_MS));
  const pod = fleet.connectorFor(fault.connector);
  switch (fault.act) {
    case "kill":
      return void (await killConnector(fleet, pod));
    case "term":
      return void (await endConnector(fleet, pod));
    case "freeze":
      return await freeze(pod, forMs);
    case "slow":
      return await slow(pod.proxies, SLOW_MS, forMs);
    case "cut":
      return await cut(fleet, pod.proxies, fleet.agentsOf(pod), forMs);
  }
}

/** Of the shard that has the partition of an agent. */
async function injectIntoCluster(
  fleet: ClusterFleet,
  fault: Extract<Fault, { agent: number }>,
  forMs: () => Promise<unknown>,
): Promise<void> {
  const { cluster } = fleet.stage;
  const slot = slotOfAgent(fleet.agents[fault.agent]?.id as string);
  switch (fault.act) {
    case "hangPrimary":
      return await hangPrimary(fleet, slot, forMs);
    case "failOver":
      return await failOver(fleet, slot);
    case "moveSlot":
      return await moveSlot(fleet, slot, await otherPrimary(fleet, slot));
    case "killPrimary": {
      const shard = await shardOf(fleet, slot);
      const replica = await cluster.replicaOf(shard.primary);
      await cluster.letTakeOver(replica);
      await promote(fleet, shard, { replica, silence: () => cluster.kill(shard.primary) });
      return await cluster.mend();
    }
    case "loseShard":
      return await loseShard(fleet, await shardOf(fleet, slot), async () => {});
  }
}
