/** What a run plays with. */
export const AGENTS = 12;
export const CONNECTORS = 3;

/** Forgeries, and the code with which each is refused. Source: docs/protocol.md#signatures, docs/protocol.md#frames. */
export const FORGERIES = {
  /** Signed with the forger's own key, in another's name. */
  from: "key_not_allowed",
  /** Under another's key id, signed with the forger's own key. */
  key: "bad_signature",
  /** What was signed was changed afterwards. */
  content: "bad_signature",
  /** Under a key id that nobody has. */
  unknown: "unknown_key",
} as const;
export type Forgery = keyof typeof FORGERIES;

/** What is done, by numbers of agents and connectors; `back`: the how manieth last envelope of that agent. */
export type Act =
  | { readonly act: "message"; readonly agent: number; readonly to: number }
  | { readonly act: "heartbeat"; readonly agent: number }
  | { readonly act: "request"; readonly agent: number; readonly to: number }
  | { readonly act: "decide"; readonly agent: number; readonly approve: boolean }
  | { readonly act: "repeat"; readonly agent: number; readonly back: number }
  /** Another's connection sends what the agent had sent. */
  | { readonly act: "replay"; readonly agent: number; readonly by: number; readonly back: number }
  | { readonly act: "forge"; readonly agent: number; readonly as: number; readonly how: Forgery }
  | { readonly act: "gateway"; readonly agent: number; readonly to: number; readonly twice: boolean }
  /** Registers on a new connection, to another connector perhaps, which takes the agent over from the old one. */
  | { readonly act: "takeover"; readonly agent: number; readonly connector: number }
  | { readonly act: "leave"; readonly agent: number; readonly forMs: number }
  | { readonly act: "flushScripts" }
  | { readonly act: "loseReply"; readonly connector: number }
  | { readonly act: "hangRedis"; readonly forMs: number }
  | { readonly act: "restartRedis" }
  | { readonly act: "cut" | "slow" | "freeze"; readonly connector: number; readonly forMs: number }
  | { readonly act: "kill" | "term"; readonly connector: number }
  /** On a Redis Cluster, of the shard that has the partition of an agent. */
  | { readonly act: "hangPrimary"; readonly agent: number; readonly forMs: number }
  | { readonly act: "failOver" | "moveSlot" | "killPrimary" | "loseShard"; readonly agent: number };

type FaultName = keyof typeof POD_FAULTS | keyof typeof REDIS_FAULTS | keyof typeof CLUSTER_FAULTS;
export type Fault = Extract<Act, { act: FaultName }>;

/** An act and when it is due, ms from the start. */
export type Action = Act & { readonly at: number };

const ACTS = {
  ...{ message: 100, heartbeat: 3, request: 8, decide: 8, repeat: 8, replay: 3, forge: 3, gateway: 1 },
  ...{ takeover: 1, leave: 0.5, flushScripts: 0.3, loseReply: 0.5 },
};
const POD_FAULTS = { cut: 3, slow: 2, freeze: 2, kill: 2, term: 3 };
const REDIS_FAULTS = { hangRedis: 3, restartRedis: 2 };
const CLUSTER_FAULTS = { hangPrimary: 3, failOver: 4, moveSlot: 4, killPrimary: 2, loseShard: 1 };
/** What Redis, or a shard of it, forgets something by. */
const LOSSES = { restartRedis: 0, killPrimary: 0, loseShard: 0 };
const MOST_WAIT_MS = 16;
/** One fault at a time: which promises hold while several overlap is more than the ledger can tell. */
const FAULT_EVERY_MS = [1500, 3000] as const;
const FAULT_MS = [100, 1000] as const;
/** Less than the silence after which a replica would take over; here none does so unasked. */
const HANG_MS = [100, 600] as const;
const BACK = 30;

/** True when the run of this seed is over a Redis Cluster: every second. */
export function isOnCluster(seed: number): boolean {
  return seed % 2 === 1;
}

/** True when Redis forgets in the run of this seed: of every two of four. Its counters then tell nothing. */
export function losesRedis(seed: number): boolean {
  return seed % 4 < 2;
}

/** Endless; the same for the same seed. */
export function* actionsOf(seed: number): Generator<Action> {
  const random = new SeededRandom(seed);
  const faults = faultsOf(seed);
  let at = 0;
  let faultAt = random.between(...FAULT_EVERY_MS);
  for (;;) {
    at += random.below(MOST_WAIT_MS);
    if (at < faultAt) {
      yield { at, ...actOf(random) };
    } else {
      yield { at, ...faultOf(random, random.weighed(faults)) };
      faultAt = at + random.between(...FAULT_EVERY_MS);
    }
  }
}

function actOf(random: SeededRandom): Act {
  const act = random.weighed(ACTS);
  const agent = random.below(AGENTS);
  switch (act) {
    case "message":
    case "request":
      return { act, agent, to: random.other(AGENTS, agent) };
    case "heartbeat":
      return { act, agent };
    case "decide":
      return { act, agent, approve: random.next() < 0.7 };
    case "repeat":
      return { act, agent, back: random.below(BACK) };
    case "replay":
      return { act, agent, by: random.other(AGENTS, agent), back: random.below(BACK) };
    case "forge":
      return { act, agent, as: random.other(AGENTS, agent), how: forgeryOf(random) };
    case "gateway":
      return { act, agent, to: random.other(AGENTS, agent), twice: random.next() < 0.5 };
    case "takeover":
      return { act, agent, connector: random.below(CONNECTORS) };
    case "leave":
      return { act, agent, forMs: random.between(...FAULT_MS) };
    case "loseReply":
      return { act, connector: random.below(CONNECTORS) };
    case "flushScripts":
      return { act };
  }
}

function forgeryOf(random: SeededRandom): Forgery {
  const names = Object.keys(FORGERIES) as Forgery[];
  return names[random.below(names.length)] as Forgery;
}

export function isFault(act: Act): act is Fault {
  return act.act in { ...POD_FAULTS, ...REDIS_FAULTS, ...CLUSTER_FAULTS };
}

/** How often each comes. */
function faultsOf(seed: number): Readonly<Record<FaultName, number>> {
  const all = { ...POD_FAULTS, ...REDIS_FAULTS, ...CLUSTER_FAULTS };
  const without = isOnCluster(seed) ? REDIS_FAULTS : CLUSTER_FAULTS;
  const never = Object.keys({ ...without, ...(losesRedis(seed) ? {} : LOSSES) });
  const weights = Object.entries(all).map(([name, weight]) => [name, never.includes(name) ? 0 : weight]);
  return Object.fromEntries(weights);
}

function faultOf(random: SeededRandom, act: FaultName): Fault {
  switch (act) {
    case "restartRedis":
      return { act };
    case "hangRedis":
      return { act, forMs: random.between(...FAULT_MS) };
    case "hangPrimary":
      return { act, agent: random.below(AGENTS), forMs: random.between(...HANG_MS) };
    case "failOver":
    case "moveSlot":
    case "killPrimary":
    case "loseShard":
      return { act, agent: random.below(AGENTS) };
    case "kill":
    case "term":
      return { act, connector: random.below(CONNECTORS) };
    default:
      return { act, connector: random.below(CONNECTORS), forMs: random.between(...FAULT_MS) };
  }
}

/** Chance that can be had again: the same seed, the same throws. */
class SeededRandom {
  #state: number;

  /** @param seed an integer of 32 bits. */
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 on, below 1. Source: mulberry32 by Tommy Ettinger, in the public domain. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 on, below `n`. */
  below(n: number): number {
    return Math.floor(this.next() * n);
  }

  /** An integer from 0 on, below `n`, which is not `taken`. */
  other(n: number, taken: number): number {
    return (taken + 1 + this.below(n - 1)) % n;
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** One of the names, each as often as its weight says. */
  weighed<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const entries = Object.entries(weights) as [Name, number][];
    let rest = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [name, weight] of entries) {
      rest -= weight;
      if (rest < 0) return name;
    }
    return (entries.at(-1) as [Name, number])[0];
  }
}
