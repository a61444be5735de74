import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";

/** What bounds sessions, and who decides them. */
export const SESSION_MUTATIONS: readonly Mutation[] = [
  {
    name: "a decision is kept for a requester who was not online",
    file: `${LUA}/accept/sessions_and_claims.lua`,
    find: "if reached == 'online' then return end",
    replace: "if reached then return end",
    tests: ["shared/window/test/session-decisions.test.ts", "test/conformance/sessions.test.ts"],
  },
  {
    name: "pending sessions of one requester at a target",
    file: "shared/window/src/lua/accept/sessions_and_claims.lua",
    find: "if #own >= most_of_requester then",
    replace: "if false then",
    tests: ["shared/window/test/session-bounds.test.ts", "test/conformance/sessions.test.ts"],
  },
  {
    name: "pending sessions of a principal",
    file: "shared/window/src/lua/accept/sessions_and_claims.lua",
    find: "if held >= newcomer.principal_holds_most then",
    replace: "if false then",
    tests: ["shared/window/test/session-bounds.test.ts", "services/gateway/test/rate-limits.test.ts"],
  },
  {
    name: "sessions that a requester opens in a minute",
    file: "shared/window/src/lua/accept/sessions_and_claims.lua",
    find: "newcomer.opened_elsewhere, most_opened, ",
    replace: "newcomer.opened_elsewhere, math.huge, ",
    tests: ["shared/window/test/session-bounds.test.ts", "test/conformance/sessions.test.ts"],
  },
];
