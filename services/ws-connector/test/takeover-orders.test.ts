import { describe, expect, test } from "@jest/globals";
import type { Acceptance } from "window/acceptance/acceptance.ts";
import { AGENT, online, RegistrarHarness } from "./registrar-harness.ts";

/**
 * Registers, heartbeats and takeovers of one agent in every order in which they can happen. Redis answers in the order
 * it was asked, and publishes in the order of the takeovers; which of the two arrives first is open.
 */

const STEPS = ["send", "carry out", "take over", "answer", "notice"] as const;
type Step = (typeof STEPS)[number];
type Kind = "register" | "heartbeat";

/** What Redis does, and what is on its way from there. */
class RedisModel {
  epoch = 0;
  owner: "this" | "other" | null = null;
  readonly answers: Acceptance[] = [];
  readonly notices: number[] = [];

  carryOut(kind: Kind): void {
    const isRefused = kind === "heartbeat" && this.owner === "other";
    if (!isRefused && this.owner !== "this") this.#give("this");
    this.answers.push(isRefused ? { outcome: "not_registered", epoch: this.epoch } : online(this.epoch));
  }

  takeOver(): void {
    const former = this.owner;
    this.#give("other");
    if (former === "this") this.notices.push(this.epoch);
  }

  #give(owner: "this" | "other"): void {
    this.owner = owner;
    this.epoch += 1;
  }
}

/** One run of steps over fresh models. */
function run(kinds: readonly Kind[], takeovers: number, steps: readonly Step[], carriesAnother: boolean) {
  const redis = new RedisModel();
  const relay = new RegistrarHarness();
  if (carriesAnother) relay.agents.apply("agent://other", { kind: "granted", epoch: 1, key: "k", heardAt: 0 });
  const toSend = [...kinds];
  const toCarryOut: Kind[] = [];
  let toTakeOver = takeovers;
  let owned = false;

  const actions: Record<Step, () => void> = {
    send: () => {
      relay.request();
      toCarryOut.push(toSend.shift() as Kind);
    },
    "carry out": () => redis.carryOut(toCarryOut.shift() as Kind),
    "take over": () => {
      redis.takeOver();
      toTakeOver -= 1;
    },
    answer: () => relay.answer(redis.answers.shift() as Acceptance),
    notice: () => relay.takeOver(redis.notices.shift() as number),
  };
  for (const step of steps) {
    const before = relay.sent.length;
    actions[step]();
    const notices = relay.sent.slice(before).filter(({ frame }) => frame === "notice");
    const isLost = owned && !relay.agents.owns(AGENT);
    // No loss without its notice, and no notice of an agent that is not lost.
    if (isLost) expect(notices).toHaveLength(1);
    if (notices.length > 0) expect([relay.agents.owns(AGENT), redis.owner]).toEqual([false, "other"]);
    owned = relay.agents.owns(AGENT);
  }
  const open: Record<Step, number> = {
    send: toSend.length,
    "carry out": toCarryOut.length,
    "take over": toTakeOver,
    answer: redis.answers.length,
    notice: redis.notices.length,
  };
  return { redis, relay, next: STEPS.filter((step) => open[step] > 0) };
}

/** Every complete run; `check` gets what it came to. Returns how many there were. */
function everyRun(
  kinds: readonly Kind[],
  carriesAnother: boolean,
  check: (end: ReturnType<typeof run>) => void,
): number {
  const TAKEOVERS = 2;
  const from = (steps: readonly Step[]): number => {
    const end = run(kinds, TAKEOVERS, steps, carriesAnother);
    if (end.relay.closedWith === undefined && end.next.length > 0) {
      return end.next.reduce((total, step) => total + from([...steps, step]), 0);
    }
    check(end);
    return 1;
  };
  return from([]);
}

const KINDS: readonly (readonly [Kind, Kind])[] = [
  ["register", "register"],
  ["register", "heartbeat"],
  ["heartbeat", "register"],
  ["heartbeat", "heartbeat"],
];

describe.each(KINDS)("a %s and a %s, while others take the agent over twice, in every order", (...kinds) => {
  test("leave the connection with the agent exactly when Redis says so", () => {
    const runs = everyRun(kinds, true, ({ redis, relay }) => {
      expect(relay.agents.owns(AGENT)).toBe(redis.owner === "this");
      expect(relay.closedWith).toBeUndefined();
    });
    expect(runs).toBeGreaterThan(300);
  });

  test("close a connection with 4409 exactly when it had the agent, lost it, and carries no other", () => {
    everyRun(kinds, false, ({ redis, relay }) => {
      const hadIt = relay.sent.some(({ frame }) => frame === "ack");
      if (relay.closedWith !== undefined) expect([relay.closedWith, redis.owner]).toEqual([4409, "other"]);
      else expect([relay.agents.owns(AGENT), redis.owner === "this"]).toEqual([hadIt, hadIt]);
    });
  });
});
