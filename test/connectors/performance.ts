import { expect } from "@jest/globals";
import type { WireProxy } from "../../connector/test/wire-proxy.ts";
import type { Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { type Cast, ISSUERS } from "./cast.ts";
import { CallFailed } from "./driver-process.ts";
import type { Step } from "./scenario.ts";
import { disturb } from "./wire.ts";

/** Told and not expected: a scenario names each delivery and each error of its agents. */
const HAS_TO_BE_HEARD = ["delivery", "error", "warning", "overflow"];

/** A busy machine may be late with `hello` or a look-up, of which an agent that is not online tells. No step has to hear it. */
const tellsOfLateness = (event: string, { code, retry }: Frame) =>
  event === "error" && code === "unreachable" && retry === "later";

/** Performs the steps of one run, in order. */
export class Performance {
  readonly #cast: Cast;
  readonly #remembered: Record<string, unknown> = { issuers: Object.values(ISSUERS) };
  readonly #later = new Map<string, Promise<Frame>[]>();

  constructor(cast: Cast) {
    this.#cast = cast;
  }

  /** Rejects with what was not as the step says. */
  async step(step: Step): Promise<void> {
    if (step.relay === "kill") await this.#cast.killPod();
    else if (step.relay === "list") await this.#cast.list(step.with);
    else if (step.relay === "sends") await this.#cast.sendByGateway(this.#filled(step.with ?? {}, 0));
    else if (step.wire !== undefined) await this.#onWire(step.wire, step);
    else if (step.hears !== undefined) await this.#hears(step.agent as string, step.hears, step);
    else if (step.then !== undefined) await this.#settled(this.#later.get(step.then) ?? [], step);
    else await this.#does(step.agent as string, step);
  }

  /** At the end nothing is left that no step has heard. */
  async nothingElse(ignored: readonly string[]): Promise<void> {
    await this.#allIsThere();
    const heard = HAS_TO_BE_HEARD.filter((event) => !ignored.includes(event));
    for (const [name, { driver }] of this.#cast.actors) {
      const unheardOf = (event: string) =>
        driver.unheard(this.#cast.nameOf(name), event).filter((told) => !tellsOfLateness(event, told));
      const unheard = heard.map((event) => [event, unheardOf(event)] as const);
      expect({ [name]: Object.fromEntries(unheard.filter(([, told]) => told.length > 0)) }).toEqual({ [name]: {} });
    }
  }

  /** What the relay answers comes after what it has delivered. */
  async #allIsThere(): Promise<void> {
    const question = { to: "agent://nobody", payload: {}, timeout_ms: 500 };
    const answers = [...this.#cast.actors.keys()].map((name) => this.#cast.call(name, "send", question));
    await Promise.allSettled(answers);
  }

  async #does(name: string, step: Step): Promise<void> {
    const calls = this.#counted(step).map((n) => {
      return this.#cast.call(name, step.does as string, this.#filled(step.with ?? {}, n));
    });
    for (const call of calls) call.catch(() => {});
    if (step.later !== undefined) this.#later.set(step.later, calls);
    else await this.#settled(calls, step);
  }

  async #settled(calls: readonly Promise<Frame>[], step: Step): Promise<void> {
    const startedAt = performance.now();
    for (const [n, call] of calls.entries()) {
      const outcome = await call.then(
        (result) => ({ gives: result }),
        (error) => ({ fails: error instanceof CallFailed ? error.details : String(error) }),
      );
      expect(outcome).toMatchObject(this.#expectation(step, n + (step.from ?? 0)));
      if (step.as !== undefined && "gives" in outcome) this.#remembered[step.as] = outcome.gives;
    }
    if (step.within_ms !== undefined) expect(performance.now() - startedAt).toBeLessThan(step.within_ms);
  }

  async #hears(name: string, event: string, step: Step): Promise<void> {
    const { driver } = this.#cast.actor(name);
    const expected = this.#counted(step).map((n) => this.#filled(step.like ?? {}, n));
    const heard: Frame[] = [];
    while (heard.length < expected.length) {
      const told = await driver.hears(this.#cast.nameOf(name), event);
      if (step.like?.code === told.code || !tellsOfLateness(event, told)) heard.push(told);
    }
    const inAnyOrder = expect.arrayContaining(expected.map((each) => expect.objectContaining(each)));
    if (step.in_any_order) expect(heard).toEqual(inAnyOrder);
    else expect(heard).toMatchObject(expected);
    if (step.as !== undefined) this.#remembered[step.as] = heard.at(-1);
  }

  async #onWire(name: string, step: Step): Promise<void> {
    const proxy = this.#cast.proxyOf(name);
    if (step.does === "sent") await this.#sent(proxy, step.with);
    else disturb(proxy, step.does as string, this.#filled(step.with ?? {}, 0));
  }

  /** What went out of this type so far. */
  async #sent(proxy: WireProxy, { type, envelopes, is_repeated, clock_ms, is_for_here }: Frame): Promise<void> {
    const sent = () => proxy.sent.filter((envelope) => envelope.type === type);
    await until(`a ${type} goes out`, () => sent().length > 0);
    const texts = sent().map((envelope) => JSON.stringify(envelope));
    if (envelopes !== undefined) expect(new Set(texts).size).toBe(envelopes);
    if (is_repeated !== undefined) expect(texts.length > new Set(texts).size).toBe(is_repeated);
    if (clock_ms !== undefined) expect(Math.abs(sent().at(-1).ts - Date.now() - clock_ms)).toBeLessThan(30_000);
    const here = { relay: new URL(proxy.url).host, connection_id: proxy.greeted.at(-1) };
    if (is_for_here !== undefined) expect(sent().at(-1).payload).toMatchObject(here);
  }

  /** A call of which nothing is said succeeds. */
  #expectation({ gives, fails }: Step, n: number): object {
    if (fails !== undefined) return { fails: this.#filled(fails, n) };
    return { gives: gives === undefined ? expect.anything() : this.#filled(gives, n) };
  }

  #counted({ times = 1, from = 0 }: Step): number[] {
    return Array.from({ length: times }, (_, n) => n + from);
  }

  /** With ids of this run's agents, and what was remembered. */
  #filled(value: unknown, n: number): Frame {
    if (Array.isArray(value)) return value.map((each) => this.#filled(each, n));
    if (typeof value === "string") return this.#meaning(value, n);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#filled(member, n)]));
  }

  #meaning(text: string, n: number): unknown {
    if (text === "$n") return n;
    if (text === "<text>") return expect.stringMatching(/./);
    if (text.startsWith("<text> ")) return expect.stringContaining(text.slice("<text> ".length));
    const repeated = /^\$(x|🙂)\*(\d+)$/u.exec(text);
    if (repeated !== null) return (repeated[1] as string).repeat(Number(repeated[2]));
    if (text.startsWith("$0*")) return Array(Number(text.slice("$0*".length))).fill(0);
    if (text.startsWith("agent://")) return this.#cast.idOf(text.slice("agent://".length));
    if (!text.startsWith("$")) return text;
    const path = text.slice(1).split(".");
    const found = path.reduce<Frame>((within, name) => within?.[name], this.#remembered);
    if (found === undefined) throw new Error(`Nothing is remembered as ${text}.`);
    return found;
  }
}
