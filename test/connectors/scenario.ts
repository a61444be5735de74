import { readFileSync } from "node:fs";
import type { Frame } from "../support/agent.ts";
import { LANGUAGES, type Language } from "./driver-process.ts";

/** The form of `behaviour.json`: how a connector behaves, in whichever language. CONTRIBUTING.md says how to add to it. */

/** A key of the keys file, or the name of an issuer that vouches for the agent. */
export type KeyKind = "ed25519" | "hmac" | "acme" | "globex";

export interface AgentEntry {
  /** `other`: the second language of a pair runs it. */
  readonly side?: "other";
  /** Default `ed25519`. */
  readonly key?: KeyKind;
  /** Another connector of that agent. */
  readonly is?: string;
  /** False: a step starts it. */
  readonly starts?: boolean;
  /** False: the relay knows its key only from a step on. */
  readonly listed?: boolean;
  /** False: nothing listens to its deliveries, which wait to be read. */
  readonly listens?: false;
  /** Of its URL, in the place of http. */
  readonly scheme?: "https";
  /**
   * Options of its connector. Under `trust.keys` stand names of agents, under `trust.issuers` those of issuers; `trust.gateways`
   * is `all` of the relay.
   */
  readonly options?: Frame;
  /**
   * It dials a proxy. `clock_ms`: how far off the relay's clock is there; `pod: own`: one that `relay: kill` ends; `manifest`: the
   * relay's is there, too.
   */
  readonly wire?: {
    readonly clock_ms?: number;
    readonly pod?: "own";
    readonly manifest?: true;
  };
}

/**
 * One of: an agent `does` something, and it `gives` or `fails`, now or, `later`, where a step says `then`; an agent `hears` an
 * event, the next of its kind; somebody on an agent's `wire` does something; the `relay` does: `sends`: a gateway sends a message
 * `from` an agent, with its API key.
 *
 * `times`: so often, at once; `$n` counts. `$x*5` is a text of five x, `$🙂*5` of five characters that take two units of UTF-16 each, `$0*5` a list of five zeros. `as` names what came out, for later steps: `$name.member`. "<text>" stands for any
 * text, "<text> …" for one that has the rest in it. agent://name is the agent of this name.
 */
export interface Step {
  readonly agent?: string;
  readonly wire?: string;
  readonly relay?: "kill" | "list" | "sends";
  readonly does?: string;
  readonly with?: Frame;
  readonly gives?: unknown;
  readonly fails?: Frame;
  /** Counted from this step on. */
  readonly within_ms?: number;
  readonly later?: string;
  readonly then?: string;
  readonly hears?: string;
  readonly like?: Frame;
  readonly as?: string;
  readonly times?: number;
  /** Where `$n` begins. */
  readonly from?: number;
  /** Of what is heard several times. */
  readonly in_any_order?: true;
}

export interface Scenario {
  readonly name: string;
  readonly agents: Readonly<Record<string, AgentEntry>>;
  readonly steps: readonly Step[];
  /** Events that may come more often than steps hear them. */
  readonly ignores?: readonly string[];
}

/** A scenario in these languages: of its agents, and of those on the other side. */
export interface Run {
  readonly scenario: Scenario;
  readonly languages: readonly [Language, Language];
  /** Tells its agents from those of every other run. */
  readonly number: number;
}

export const SCENARIOS: readonly Scenario[] = JSON.parse(
  readFileSync(new URL("behaviour.json", import.meta.url), "utf8"),
);

/** Each scenario in each language, and where it has two sides in each pair of them. */
export function allRuns(): readonly Run[] {
  const runs = SCENARIOS.flatMap((scenario) => pairsOf(scenario).map((languages) => ({ scenario, languages })));
  return runs.map((run, number) => ({ ...run, number }));
}

function pairsOf({ agents }: Scenario): (readonly [Language, Language])[] {
  const hasTwoSides = Object.values(agents).some(({ side }) => side === "other");
  return LANGUAGES.flatMap((one) => (hasTwoSides ? LANGUAGES : [one]).map((other) => [one, other] as const));
}

/** Runs that must fail: what is sent is to be refused, what arrives is not heard, and what takes time is to take none. */
export function spoilt(runs: readonly Run[]): readonly Run[] {
  const [{ scenario, languages }] = runs as readonly [Run];
  const send = { agent: "ann", does: "send", with: { to: "agent://bob", payload: {} } };
  const hear = { agent: "bob", hears: "delivery" };
  const steps = [
    [{ ...send, fails: { code: "closed" } }, hear],
    [send, send, hear],
    [{ ...send, within_ms: 0 }, hear],
  ];
  return steps.map((steps, n) => ({ scenario: { ...scenario, steps }, languages, number: runs.length + n }));
}
