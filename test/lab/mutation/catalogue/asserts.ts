import type { Mutation } from "../mutation.ts";

const SCRIPT = "shared/window/src/lua/assert_routes.lua";
const PRESENCE = "shared/window/src/lua/accept/presence.lua";
const REPLY = "shared/window/src/acceptance/acceptance-reply.ts";
const POD = "services/ws-connector/src/asserts.ts";
const CALLS = ["shared/window/test/assert-routes.test.ts"];
const PODS = ["services/ws-connector/test/asserts.test.ts"];
const WHOLE = ["test/integration/asserts.test.ts"];

/** That live agents come back by themselves where Redis lost them, and that nothing becomes true by it. */
export const ASSERT_MUTATIONS: readonly Mutation[] = [
  {
    name: "agents are asserted in another window",
    file: "services/ws-connector/src/service.ts",
    find: "window.onChange(() => asserts.all());",
    replace: "",
    tests: WHOLE,
  },
  {
    name: "agents are asserted when the channel is ready again",
    file: "services/ws-connector/src/service.ts",
    find: "channel.onReady(() => void asserts.all());",
    replace: "",
    tests: WHOLE,
  },
  {
    name: "a pod without writes finds out about another window",
    file: "services/ws-connector/src/service.ts",
    find: "void window.follow().catch(() => {})",
    replace: "{}",
    tests: WHOLE,
  },
  {
    name: "an assert leaves what its own connection has",
    file: SCRIPT,
    find: "if is_owned(record, pod .. ' ' .. connection) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "an assert takes nothing from a newer epoch",
    file: SCRIPT,
    find: "if owner and tonumber(owner.epoch) >= tonumber(epoch) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "an older owner is told of an assert that takes its agent",
    file: SCRIPT,
    find: "redis.call('SPUBLISH', channel_prefix",
    replace: "string.len(channel_prefix",
    tests: CALLS,
  },
  {
    name: "an assert does nothing after its deadline",
    file: SCRIPT,
    find: "if is_late(now, deadline) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "an assert does nothing in another window",
    file: SCRIPT,
    find: "~= window_id then return { 'window' }",
    replace: "~= window_id and false then return { 'window' }",
    tests: CALLS,
  },
  {
    name: "an assert counts towards the agents of a key",
    file: SCRIPT,
    find: "if not is_known and refusal_of_newcomer(",
    replace: "if false and refusal_of_newcomer(",
    tests: CALLS,
  },
  {
    name: "epochs rise above those that were asserted",
    file: SCRIPT,
    find: "redis.call('SET', clock_key, digits(highest))",
    replace: "",
    tests: CALLS,
  },
  {
    name: "an agent was last seen when its pod heard it",
    file: SCRIPT,
    find: "math.min(heard_at, now - 1)",
    replace: "now - 1",
    tests: CALLS,
  },
  {
    name: "an agent is not seen in the future",
    file: SCRIPT,
    find: "math.min(heard_at, now - 1)",
    replace: "tonumber(heard_at)",
    tests: CALLS,
  },
  {
    name: "an assert does not make an agent be seen earlier than it was",
    file: SCRIPT,
    find: "redis.call('ZADD', presence_key, 'GT', seen_at, agent)",
    replace: "redis.call('ZADD', presence_key, seen_at, agent)",
    tests: CALLS,
  },
  {
    name: "a repeat is no sign of life",
    file: REPLY,
    find: "sentAt - Math.max(0, now - seenAt)",
    replace: "sentAt",
    tests: CALLS,
  },
  {
    name: "what waits is told to who was asserted",
    file: PRESENCE,
    find: "owns and tonumber(since) <= tonumber(owner.seen_at)",
    replace: "owns and batch.now - owner.seen_at <= batch.stale_after",
    tests: CALLS,
  },
  {
    name: "what a key no longer allows is not asserted",
    file: POD,
    find: " || !authority.mayAct(connection, hold.key, agent)",
    replace: "",
    tests: PODS,
  },
  {
    name: "what a pod lets go is not asserted",
    file: POD,
    find: " || !registrar.canTakeAgents(connection)",
    replace: "",
    tests: PODS,
  },
  {
    name: "nor what a closing connection had",
    file: POD,
    find: "connection.isClosing || ",
    replace: "",
    tests: PODS,
  },
  {
    name: "a release that an assert overtook is made again",
    file: POD,
    find: "releaser.release([route]);",
    replace: "{}",
    tests: PODS,
  },
  {
    name: "who lost its agent to a newer epoch is told",
    file: POD,
    find: "void registrar.supersedeInOrder(held.connection, held.agent, newer);",
    replace: "{}",
    tests: PODS,
  },
  {
    name: "an assert that Redis did not take is made again",
    file: POD,
    find: "if (!isTaken) this.#isDue = true;",
    replace: "",
    tests: PODS,
  },
];
