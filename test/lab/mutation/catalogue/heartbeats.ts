import type { Mutation } from "../mutation.ts";

const SCRIPT = "shared/window/src/lua/touch_agents.lua";
const CALL = "shared/window/src/acceptance/touches.ts";
const GATHERED = "services/ws-connector/src/heartbeats.ts";
const INTAKE = "services/ws-connector/src/intake.ts";
const REGISTRAR = "services/ws-connector/src/registrar.ts";
const CALLS = ["shared/window/test/touches.test.ts"];
const GATHERING = ["services/ws-connector/test/heartbeats.test.ts"];
const TAKEN_IN = ["services/ws-connector/test/intake.test.ts"];
const OWNING = ["services/ws-connector/test/registrar.test.ts"];
const WHOLE = ["test/integration/heartbeats.test.ts"];

/** That heartbeats which are gathered say what is true, and give nobody an agent. */
export const HEARTBEAT_MUTATIONS: readonly Mutation[] = [
  {
    name: "a touch is for its owner's route alone",
    file: SCRIPT,
    find: "if not is_owned(record, owner) then return false end",
    replace: "if not record then return false end",
    tests: CALLS,
  },
  {
    name: "a touch brings no route back",
    file: SCRIPT,
    find: "if not is_owned(record, owner) then return false end",
    replace: "if record and not is_owned(record, owner) then return false end",
    tests: CALLS,
  },
  {
    name: "a touch does nothing after its deadline",
    file: SCRIPT,
    find: "if is_late(now, deadline) then",
    replace: "if false then",
    tests: CALLS,
  },
  {
    name: "a touch does nothing in another window",
    file: SCRIPT,
    find: "~= window_id then return { 'window' }",
    replace: "~= window_id and false then return { 'window' }",
    tests: CALLS,
  },
  {
    name: "a heartbeat that the guard knows is left to acceptance",
    file: SCRIPT,
    find: "if known[bucket][digest] or not",
    replace: "if not",
    tests: CALLS,
  },
  {
    name: "of two equal heartbeats of one call one is taken",
    file: SCRIPT,
    find: "  known[bucket][digest] = true\n",
    replace: "",
    tests: CALLS,
  },
  {
    name: "a heartbeat that the guard cannot hold is not taken",
    file: SCRIPT,
    find: " or not is_guardable(batch, tonumber(ends_at), bucket) then",
    replace: " or is_guardable(batch, tonumber(ends_at), bucket) == 0 then",
    tests: CALLS,
  },
  {
    name: "the guard knows the heartbeats that were taken",
    file: SCRIPT,
    find: "for bucket, list in pairs(digests) do redis.call('SADD', bucket, unpack(list)) end",
    replace: "",
    tests: CALLS,
  },
  {
    name: "a stale agent begins a new hold by its heartbeat",
    file: SCRIPT,
    find: "now - last > stale_after or ",
    replace: "",
    tests: CALLS,
  },
  {
    name: "a heartbeat mends when an agent was heard by a clock that was set back",
    file: SCRIPT,
    find: "last > now or ",
    replace: "",
    tests: CALLS,
  },
  {
    name: "a heartbeat that is gathered ends a row of refusals",
    file: "services/ws-connector/src/intake.ts",
    find: "    this.#connection.noteValid(principalOf(verified), verified.envelope.from);\n    this.#accepting += 1;",
    replace: "    this.#accepting += 1;",
    tests: ["test/integration/session-decisions.test.ts"],
  },
  {
    name: "an agent that lost its connection is not acknowledged there",
    file: "services/ws-connector/src/registrar.ts",
    find: "else if (!connection.agents.owns(agent)) refuse({",
    replace: "else if (false) refuse({",
    tests: ["services/ws-connector/test/registrar.test.ts"],
  },
  {
    name: "an asserted agent is told what waits with its next heartbeat",
    file: SCRIPT,
    find: " or tonumber(since) > last then",
    replace: " then",
    tests: CALLS,
  },
  {
    name: "a touch never sets back when its agent was heard",
    file: SCRIPT,
    find: "digits(math.max(heard_at, last))",
    replace: "digits(heard_at)",
    tests: CALLS,
  },
  {
    name: "an agent was heard when its heartbeat came in, not when it was written",
    file: CALL,
    find: "Math.round(endsAt - heardAt)",
    replace: "Math.round(endsAt - performance.now() + heardAt * 0)",
    tests: CALLS,
  },
  {
    name: "the clock of a partition rises to the epochs that touches carry",
    file: SCRIPT,
    find: "redis.call('SET', clock_key, digits(highest))",
    replace: "redis.call('GET', clock_key)",
    tests: CALLS,
  },
  {
    name: "touches are sent before what follows them",
    file: CALL,
    find: "(await inWindow(this.#window.current)) ?? ",
    replace: "",
    tests: WHOLE,
  },
  {
    name: "a release comes behind the heartbeats of its connection",
    file: REGISTRAR,
    find: "    this.#heartbeats.flushOf(connection);\n    const routes = connection.agents.releaseAll();",
    replace: "    const routes = connection.agents.releaseAll();",
    tests: OWNING,
  },
  {
    name: "a register comes behind the heartbeats of its agent",
    file: REGISTRAR,
    find: "this.#heartbeats.flushOf(connection, verified.envelope.from);",
    replace: "",
    tests: OWNING,
  },
  {
    name: "a pod that stops answers the heartbeats that it gathered",
    file: REGISTRAR,
    find: "await this.#heartbeats.settled(connection);",
    replace: "",
    tests: WHOLE,
  },
  {
    name: "nobody is called online by a heartbeat while no delivery reaches it",
    file: GATHERED,
    find: "if (!this.#channel.isReadyFor(agent)) return UNDONE;",
    replace: "",
    tests: GATHERING,
  },
  {
    name: "a heartbeat of an agent that was lost since is not written",
    file: GATHERED,
    find: "?.epoch === epoch ? undefined : null",
    replace: "?.epoch === epoch ? undefined : undefined",
    tests: GATHERING,
  },
  {
    name: "a call for heartbeats is bounded",
    file: GATHERED,
    find: "if (waiting.length === REDIS_LIMITS.routesBatch) this.#flushPartition(partition);",
    replace: "",
    tests: GATHERING,
  },
  {
    name: "an agent that was lost is not taken back by a heartbeat from before",
    file: INTAKE,
    find: "if (!this.#connection.agents.owns(from))",
    replace: "if (false)",
    tests: TAKEN_IN,
  },
  {
    name: "a heartbeat under another key goes to acceptance",
    file: INTAKE,
    find: "if (hold?.key === verified.key)",
    replace: "if (hold !== null)",
    tests: TAKEN_IN,
  },
  {
    name: "a touch gives its connection nothing",
    file: "services/ws-connector/src/agent-transitions.ts",
    find: "epoch === state.epoch ? { ...state, heardAt",
    replace: "epoch !== 0 ? { ...state, epoch, heardAt",
    tests: ["services/ws-connector/test/agent-transitions.test.ts"],
  },
  {
    name: "who was heard from lately is not pinged",
    file: "services/ws-connector/src/connection.ts",
    find: "if (pings < 1 || !Number",
    replace: "if (!Number",
    tests: ["services/ws-connector/test/connection.test.ts"],
  },
  {
    name: "a heartbeat is taken in before what follows it",
    file: INTAKE,
    find: "    batch.flush();\n    takeIn();",
    replace: "    takeIn();",
    tests: TAKEN_IN,
  },
  {
    name: "a heartbeat that waited was heard when it came in",
    file: INTAKE,
    find: "    connection.intake.receive(text, cameAt);",
    replace: "    connection.intake.receive(text, performance.now());",
    tests: TAKEN_IN,
  },
  {
    name: "a heartbeat that waits was there before the takeover that is told",
    file: REGISTRAR,
    find: "    this.#batch.flush();",
    replace: "",
    tests: OWNING,
  },
  {
    name: "what an unregistered connection sends is done in its turn",
    file: INTAKE,
    find: "if (connection.principal === undefined) takeIn();\n  else if",
    replace: "if",
    tests: TAKEN_IN,
  },
  {
    name: "a batch of texts is no more than are checked in a moment",
    file: "services/ws-connector/src/intake-batch.ts",
    find: "if (this.#waiting.length >= MOST_IN_BATCH) this.flush();\n    else ",
    replace: "",
    tests: ["services/ws-connector/test/intake-batch.test.ts"],
  },
  {
    name: "a text that takes long to check does not wait for others",
    file: "services/ws-connector/src/intake-batch.ts",
    find: "text.length <= LONGEST_TEXT && ",
    replace: "",
    tests: ["services/ws-connector/test/intake-batch.test.ts"],
  },
  {
    name: "no thread is woken for a few signatures more than another's part",
    file: "shared/runtime/src/verification/signature-verifier.ts",
    find: "Math.floor(checks.length / MIN_CHECKS)",
    replace: "Math.ceil(checks.length / MIN_CHECKS)",
    tests: ["shared/runtime/test/verification/signature-verifier.test.ts"],
  },
];
