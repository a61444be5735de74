import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";
const UNWANTED = `${LUA}/accept/unwanted.lua`;
const NAMED = ["shared/window/test/accept-from.test.ts"];
const LOST = ["shared/window/test/accept-from.test.ts"];
const TESTS = [...NAMED, ...LOST];

/** Whom agents accept envelopes from. Source: docs/protocol.md#accept_from. */
export const ACCEPT_FROM_MUTATIONS: readonly Mutation[] = [
  {
    name: "an agent is named as a whole",
    file: UNWANTED,
    find: "string.find(words, ' ' .. from .. ' ', 1, true)",
    replace: "string.find(words, from, 1, true)",
    tests: NAMED,
  },
  {
    name: "a namespace ends with its dot",
    file: UNWANTED,
    find: "' (%S+%.)%*'",
    replace: "' (%S+)%.%*'",
    tests: NAMED,
  },
  {
    name: "only an issuer is what its name stands for",
    file: "shared/window/src/acceptance/acceptance-call.ts",
    find: 'return isIssuer(principal) ? principal : "";',
    replace: 'return principal.replace(/^key|^api/, "issuer") as typeof principal;',
    tests: NAMED,
  },
  {
    name: "messages that their target does not accept are refused",
    file: `${LUA}/accept/messages.lua`,
    find: "elseif batch.some_choose and is_unwanted",
    replace: "elseif false and is_unwanted",
    tests: TESTS,
  },
  {
    name: "so are those with an Idempotency-Key",
    file: `${LUA}/accept/publications.lua`,
    find: "if batch.some_choose and is_unwanted",
    replace: "if false and is_unwanted",
    tests: NAMED,
  },
  {
    name: "so are session requests",
    file: `${LUA}/accept/sessions.lua`,
    find: "if batch.some_choose and is_unwanted",
    replace: "if false and is_unwanted",
    tests: NAMED,
  },
  {
    name: "messages of one call are of one issuer",
    file: "shared/window/src/acceptance/acceptance-call.ts",
    find: "issuerOf(last) === issuerOf(item)",
    replace: "true",
    tests: NAMED,
  },
  {
    name: "sessions that others requested before end",
    file: `${LUA}/accept/accept_from.lua`,
    find: "if #wanted == #asked.pending then return end",
    replace: "if true then return end",
    tests: NAMED,
  },
  {
    name: "a register without it accepts everyone again",
    file: `${LUA}/accept/accept_from.lua`,
    find: "elseif batch.some_choose then redis.call('HDEL', batch.accept_from_key, agent) end",
    replace: "end",
    tests: TESTS,
  },
  {
    name: "whom an agent accepts is asserted with its route",
    file: `${LUA}/assert_routes.lua`,
    find: "  keep_accept_from(agent, epoch, accept_from)\n  return ''",
    replace: "  return ''",
    tests: TESTS,
  },
  {
    name: "what Redis knows of it stays, which may be newer",
    file: `${LUA}/assert_routes.lua`,
    find: "if is_as_new(redis.call('HGET', accept_from_key, agent), epoch) then return end",
    replace: "",
    tests: LOST,
  },
  {
    name: "what a register said that has no answer yet is not said over by an older one",
    file: `${LUA}/assert_routes.lua`,
    find: "if owner.epoch ~= epoch then accept_from = '-' end",
    replace: "",
    tests: LOST,
  },
  {
    name: "what an older register said gives way",
    file: `${LUA}/lib/accept_from.lua`,
    find: "tonumber(string.match(record, '^%d+')) >= tonumber(epoch)",
    replace: "true",
    tests: LOST,
  },
  {
    name: "who does not know it says nothing of it",
    file: "shared/window/src/route-asserter.ts",
    find: "held.acceptFrom ?? NOT_KNOWN",
    replace: 'held.acceptFrom ?? ""',
    tests: LOST,
  },
  {
    name: "a heartbeat that takes an agent learns it",
    file: `${LUA}/accept/presence.lua`,
    find: "accept_from == '-' and accept_from_of(batch, agent) or nil",
    replace: "nil",
    tests: LOST,
  },
  {
    name: "a heartbeat brings it where Redis lost it",
    file: `${LUA}/accept/presence.lua`,
    find: "kind == 'register' or not owns and accept_from ~= '-'",
    replace: "kind == 'register'",
    tests: LOST,
  },
  {
    name: "unwanted sessions are not told",
    file: `${LUA}/accept/presence.lua`,
    find: "if batch.some_choose then end_unwanted_sessions(batch, agent, asked_key, ...) end",
    replace: "",
    tests: NAMED,
  },
  {
    name: "sessions that end with a register count for nobody",
    file: `${LUA}/accept/accept_from.lua`,
    find: "      end_session(batch, session, principal_prefix, session_prefix)\n",
    replace: "",
    tests: NAMED,
  },
  {
    name: "heartbeats leave it in force",
    file: "services/ws-connector/src/agent-transitions.ts",
    find: "acceptFrom ?? before?.acceptFrom",
    replace: "acceptFrom",
    tests: ["services/ws-connector/test/ownership.test.ts"],
  },
  {
    name: "who sends to agents that do not accept it is not closed for it",
    file: "services/ws-connector/src/answers.ts",
    find: ', "not_accepted_by_target"]);',
    replace: "]);",
    tests: ["test/conformance/accept-from.test.ts"],
  },
];
