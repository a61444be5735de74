import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";

/** What bounds sessions, and who decides them. */
export const SESSION_MUTATIONS: readonly Mutation[] = [
  {
    name: "a decision is kept for a requester who was not online",
    file: `${LUA}/accept/sessions.lua`,
    find: "if reached == 'online' then return end",
    replace: "if reached then return end",
    tests: ["shared/window/test/session-decisions.test.ts", "test/conformance/sessions.test.ts"],
  },
  {
    name: "a session is decided by its target, for its requester",
    file: `${LUA}/decide_session.lua`,
    find: "if asked_agent ~= records.agent_name(target) or asker ~= records.agent_name(requester) then",
    replace: "if false then",
    tests: ["shared/window/test/decide-session.test.ts"],
  },
  {
    name: "pending sessions of a target",
    file: `${LUA}/accept/session_bounds.lua`,
    find: "if #pending < most_pending then return nil end",
    replace: "if true then return nil end",
    tests: ["shared/window/test/session-bounds.test.ts"],
  },
  {
    name: "pending sessions of one requester at a target",
    file: `${LUA}/accept/session_bounds.lua`,
    find: "if #own >= most_of_requester then",
    replace: "if false then",
    tests: ["shared/window/test/session-bounds.test.ts", "test/conformance/sessions.test.ts"],
  },
  {
    name: "at a full target the principal with the most gives way",
    file: `${LUA}/accept/session_bounds.lua`,
    find: "if count > most or is_earlier then",
    replace: "if false then",
    tests: ["shared/window/test/session-bounds.test.ts"],
  },
  {
    name: "a refused session names the bound that held for its principal",
    file: "services/ws-connector/src/intake.ts",
    find: ", boundsFactorOf(principal));",
    replace: ");",
    tests: ["services/ws-connector/test/intake.test.ts"],
  },
  {
    name: "pending sessions of a principal",
    file: `${LUA}/accept/session_bounds.lua`,
    find: "if held >= newcomer.principal_holds_most then",
    replace: "if false then",
    tests: ["shared/window/test/session-bounds.test.ts", "services/gateway/test/rate-limits.test.ts"],
  },
  {
    name: "pending sessions of a principal in other partitions",
    file: "shared/window/src/acceptance/preparation.ts",
    find: "pendingElsewhere: sum(counts.map(([pending]) => pending)),",
    replace: "pendingElsewhere: 0,",
    tests: ["shared/window/test/session-bounds.test.ts"],
  },
  {
    name: "sessions that a requester opens in a minute",
    file: `${LUA}/accept/session_bounds.lua`,
    find: "newcomer.opened_elsewhere, most_opened, ",
    replace: "newcomer.opened_elsewhere, math.huge, ",
    tests: ["shared/window/test/session-bounds.test.ts", "test/conformance/sessions.test.ts"],
  },
  {
    name: "sessions that a principal opens in a minute",
    file: `${LUA}/accept/session_bounds.lua`,
    find: "newcomer.principal_opened_elsewhere, newcomer.principal_opens_most, ",
    replace: "newcomer.principal_opened_elsewhere, math.huge, ",
    tests: ["shared/window/test/session-bounds.test.ts"],
  },
  {
    name: "sessions that a principal opens in other partitions",
    file: "shared/window/src/acceptance/preparation.ts",
    find: "openedByPrincipalElsewhere: sum(counts.map(([, , opened]) => opened)),",
    replace: "openedByPrincipalElsewhere: 0,",
    tests: ["shared/window/test/session-bounds.test.ts"],
  },
  {
    name: "a session that gave way within its batch is kept for an hour",
    file: `${LUA}/accept/sessions.lua`,
    find: "local ended_at = records.place_of(asked, session.name) and ends_at or batch.now",
    replace: "local ended_at = ends_at",
    tests: ["shared/window/test/session-bounds.test.ts"],
  },
  {
    name: "a decided session gives its principal room",
    file: `${LUA}/decide_session.lua`,
    find: "redis.call('ZREM', principal_prefix .. decided.principal, decided.name)",
    replace: "",
    tests: ["shared/window/test/session-bounds.test.ts"],
  },
  {
    name: "a session that gave way gives its principal room",
    file: `${LUA}/accept/sessions.lua`,
    find: "redis.call('ZREM', prefix .. out.principal, out.name)",
    replace: "",
    tests: ["shared/window/test/session-bounds.test.ts"],
  },
];
