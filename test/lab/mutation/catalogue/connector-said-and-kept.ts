import type { Mutation } from "../mutation.ts";

/** What of others' texts the connector shows, and how much of them it keeps. */
export const CONNECTOR_SAID_AND_KEPT_MUTATIONS: readonly Mutation[] = [
  {
    name: "what a relay says of an error acts on nothing",
    file: "connector/src/frames.ts",
    find: "hint: saidText(hint)",
    replace: "hint: textOf(hint)",
    tests: ["connector/test/frames.test.ts"],
  },
  {
    name: "what a relay says to people is whole characters",
    file: "connector/src/said-text.ts",
    find: "\\p{Cs}",
    replace: "",
    tests: ["connector/test/frames.test.ts"],
  },
  {
    name: "what a relay says to people is bounded",
    file: "connector/src/said-text.ts",
    find: "text.slice(0, MAX_SAID_CHARACTERS))].slice(0, MAX_SAID_CHARACTERS)",
    replace: "text)]",
    tests: ["connector/test/frames.test.ts"],
  },
  {
    name: "what others cause is printed no more than a hundred times",
    file: "connector/src/emitter.ts",
    find: " || this.#logged.size === MAX_LOGGED",
    replace: "",
    tests: ["connector/test/emitter.test.ts"],
  },
  {
    name: "the envelopes of sessions that are kept are bounded in bytes",
    file: "connector/src/receipts/newest-sessions.ts",
    find: " && this.#bytes <= SESSION_RECORDS.maxBytes",
    replace: "",
    tests: ["connector/test/receipts/session-records.test.ts"],
  },
  {
    name: "sessions of others take no room of those in which this agent signed",
    file: "connector/src/receipts/session-records.ts",
    find: "const sessions = isOwn ? this.#own : this.#others;",
    replace: "const sessions = isOwn ? this.#others : this.#others;",
    tests: ["connector/test/receipts/session-records.test.ts"],
  },
  {
    name: "the session that a decision names has an id of bounded length",
    file: "connector/src/delivery-judge.ts",
    find: "isDecision ? sessionIdOf(payload.session_id) : told",
    replace: "isDecision ? (payload.session_id as string) : told",
    tests: ["connector/test/untrue-relay.test.ts"],
  },
  {
    name: "the agents that a notice names have ids of bounded length",
    file: "connector/src/frames.ts",
    find: " && AGENT_ID.test(value)",
    replace: "",
    tests: ["connector/test/frames.test.ts"],
  },
];
