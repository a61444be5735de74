import { Dice } from "./dice.ts";

/** What a run plays with. */
export const AGENTS = 12;
export const CONNECTORS = 3;

/** Forgeries, and the code with which each is refused. Source: protocol, sections 3 and 6. */
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
  | { readonly act: "replay"; readonly agent: number; readonly thief: number; readonly back: number }
  | { readonly act: "forge"; readonly agent: number; readonly victim: number; readonly how: Forgery }
  | { readonly act: "gateway"; readonly agent: number; readonly to: number; readonly twice: boolean }
  /** Registers on a new connection, to another connector perhaps, which takes the agent over from the old one. */
  | { readonly act: "takeover"; readonly agent: number; readonly connector: number }
  | { readonly act: "leave"; readonly agent: number; readonly forMs: number }
  | { readonly act: "flushScripts" }
  | { readonly act: "loseReply"; readonly connector: number }
  | { readonly act: "hangRedis"; readonly forMs: number }
  | { readonly act: "restartRedis" }
  | { readonly act: "cut" | "slow" | "freeze"; readonly connector: number; readonly forMs: number }
  | { readonly act: "kill" | "term"; readonly connector: number };

/** An act and when it is due, ms from the start. */
export type Action = Act & { readonly at: number };

const ACTS = {
  ...{ message: 100, heartbeat: 3, request: 8, decide: 8, repeat: 8, replay: 3, forge: 3, gateway: 1 },
  ...{ takeover: 1, leave: 0.5, flushScripts: 0.3, loseReply: 0.5 },
};
const FAULTS = { hangRedis: 3, cut: 3, slow: 2, freeze: 2, kill: 2, term: 3 };
const MOST_WAIT_MS = 16;
/** One fault at a time: which promises hold while several overlap is more than the ledger can tell. */
const FAULT_EVERY_MS = [1500, 3000] as const;
const FAULT_MS = [100, 1000] as const;
const BACK = 30;

/** True when Redis is restarted empty in the run of this seed: of every fourth. Its counters then tell nothing. */
export function losesRedis(seed: number): boolean {
  return seed % 4 === 0;
}

/** Endless; the same for the same seed. */
export function* actionsOf(seed: number): Generator<Action> {
  const dice = new Dice(seed);
  const faults = { ...FAULTS, restartRedis: losesRedis(seed) ? 2 : 0 };
  let at = 0;
  let faultAt = dice.between(...FAULT_EVERY_MS);
  for (;;) {
    at += dice.below(MOST_WAIT_MS);
    if (at < faultAt) {
      yield { at, ...actOf(dice) };
    } else {
      yield { at, ...faultOf(dice, dice.weighed(faults)) };
      faultAt = at + dice.between(...FAULT_EVERY_MS);
    }
  }
}

function actOf(dice: Dice): Act {
  const act = dice.weighed(ACTS);
  const agent = dice.below(AGENTS);
  switch (act) {
    case "message":
    case "request":
      return { act, agent, to: dice.other(AGENTS, agent) };
    case "heartbeat":
      return { act, agent };
    case "decide":
      return { act, agent, approve: dice.next() < 0.7 };
    case "repeat":
      return { act, agent, back: dice.below(BACK) };
    case "replay":
      return { act, agent, thief: dice.other(AGENTS, agent), back: dice.below(BACK) };
    case "forge":
      return { act, agent, victim: dice.other(AGENTS, agent), how: forgeryOf(dice) };
    case "gateway":
      return { act, agent, to: dice.other(AGENTS, agent), twice: dice.next() < 0.5 };
    case "takeover":
      return { act, agent, connector: dice.below(CONNECTORS) };
    case "leave":
      return { act, agent, forMs: dice.between(...FAULT_MS) };
    case "loseReply":
      return { act, connector: dice.below(CONNECTORS) };
    case "flushScripts":
      return { act };
  }
}

function forgeryOf(dice: Dice): Forgery {
  const names = Object.keys(FORGERIES) as Forgery[];
  return names[dice.below(names.length)] as Forgery;
}

function faultOf(dice: Dice, act: keyof typeof FAULTS | "restartRedis"): Act {
  switch (act) {
    case "restartRedis":
      return { act };
    case "hangRedis":
      return { act, forMs: dice.between(...FAULT_MS) };
    case "kill":
    case "term":
      return { act, connector: dice.below(CONNECTORS) };
    default:
      return { act, connector: dice.below(CONNECTORS), forMs: dice.between(...FAULT_MS) };
  }
}
