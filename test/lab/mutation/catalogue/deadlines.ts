import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";
const CALL = "shared/window/src/redis/deadline-calls.ts";
const DOWN = "shared/window/src/redis/link-down.ts";
const CLOCK = "shared/window/src/redis/redis-clock.ts";
const CALLS = ["shared/window/test/deadlines.test.ts"];
const CLOCKS = ["shared/window/test/deadlines.test.ts"];

/** That nothing takes effect after its sender was told `unavailable`, however late Redis comes to it. */
export const DEADLINE_MUTATIONS: readonly Mutation[] = [
  {
    name: "an acceptance does nothing after its deadline",
    file: `${LUA}/accept.lua`,
    find: "if is_late(now, deadline) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "nor does that of plain messages",
    file: `${LUA}/accept_messages.lua`,
    find: "if is_late(now, deadline) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "nor does the reservation of a decision",
    file: `${LUA}/reserve_decision.lua`,
    find: "if is_late(now, deadline) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "nor does a decision",
    file: `${LUA}/decide_session.lua`,
    find: "if is_late(now, deadline) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "nor does the binding of an Idempotency-Key",
    file: `${LUA}/bind_claim.lua`,
    find: "if is_late(now, deadline) then",
    replace: "if false then",
    tests: ["shared/window/test/claims.test.ts"],
  },
  {
    name: "nor does a feedback",
    file: `${LUA}/add_feedback.lua`,
    find: "if is_late(now, deadline) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "a call from before the clock of Redis was set back does nothing",
    file: `${LUA}/lib/deadline.lua`,
    find: " or now < deadline - 1000",
    replace: "",
    tests: CALLS,
  },
  {
    name: "a call on a connection that was given up is over at its deadline, not before",
    file: CALL,
    find: "if (gaveUpSince(sentAt)) await",
    replace: "if (false) await",
    tests: CALLS,
  },
  {
    name: "a call that Redis refused, or whose connection it closed, is over at once",
    file: CALL,
    find: "if (gaveUpSince(sentAt)) await",
    replace: "if (true) await",
    tests: CALLS,
  },
  {
    name: "a call is sent again when the clock of Redis was another one",
    file: CALL,
    find: "const ATTEMPTS = 2;",
    replace: "const ATTEMPTS = 1;",
    tests: CALLS,
  },
  {
    name: "what came too late is known not to be done",
    file: DOWN,
    find: "cause instanceof LateCallError || ",
    replace: "",
    tests: CALLS,
  },
  {
    name: "a process that could not run does not take Redis for slow",
    file: CLOCK,
    find: "isSetBack ? least : Math.max(this.#lead, least)",
    replace: "least",
    tests: CLOCKS,
  },
  {
    name: "a clock of Redis that was set back is believed",
    file: CLOCK,
    find: "isSetBack ? least : Math.max",
    replace: "false ? least : Math.max",
    tests: CLOCKS,
  },
  {
    name: "the time at Redis is never taken for later than it was",
    file: CLOCK,
    find: "unixMs - readAt;",
    replace: "unixMs - sentAt;",
    tests: CLOCKS,
  },
];
