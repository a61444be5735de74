import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";
const RELEASE_COMPARES = "if not is_owned(redis.call('HGET', route_key, agent), owner) then";

/** What the window keeps, and who may change it. */
export const WINDOW_MUTATIONS: readonly Mutation[] = [
  {
    name: "a reset touches no other's database",
    file: `${LUA}/reset_window.lua`,
    find: "if foreign > 0 then",
    replace: "if false then",
    tests: ["shared/window/test/reset.test.ts"],
  },
  {
    name: "window id at acceptance",
    file: `${LUA}/accept.lua`,
    find: "~= window_id then",
    replace: "== '' then",
    tests: ["shared/window/test/process-window.test.ts"],
  },
  {
    name: "window id at a session decision",
    file: `${LUA}/decide_session.lua`,
    find: "~= window_id then",
    replace: "== '' then",
    tests: ["shared/window/test/decide-session.test.ts"],
  },
  {
    name: "window id of counters",
    file: `${LUA}/flush_counters.lua`,
    find: "~= window_id then",
    replace: "== '' then",
    tests: ["shared/window/test/counters.test.ts"],
  },
  {
    name: "a heartbeat takes no agent from a live connection",
    file: `${LUA}/accept/presence.lua`,
    find: "if kind == 'heartbeat' and owner and not owns then",
    replace: "if false then",
    tests: ["shared/window/test/accept-presence.test.ts"],
  },
  {
    name: "connection fencing: a release compares pod, connection and epoch",
    file: `${LUA}/lib/route.lua`,
    find: RELEASE_COMPARES,
    replace: "if false then",
    tests: ["shared/window/test/routes.test.ts"],
  },
  {
    name: "connection fencing by connection id",
    file: "shared/window/src/records/route.ts",
    find: "[pod, connection, ",
    replace: "[pod, ...(epoch === null ? [] : [connection]), ",
    tests: ["shared/window/test/routes.test.ts"],
  },
  {
    name: "publish to nobody means stale",
    file: `${LUA}/accept/pod_messages.lua`,
    find: "pieces)) == 0 then",
    replace: "pieces)) < 0 then",
    tests: ["shared/window/test/accept-delivery.test.ts"],
  },
  {
    name: "a dead pod costs no agent its newer route",
    file: `${LUA}/lib/route.lua`,
    find: RELEASE_COMPARES,
    replace: "if false then",
    tests: ["shared/window/test/accept-delivery.test.ts"],
  },
  {
    name: "agents of a namespace key",
    file: `${LUA}/accept/agents.lua`,
    find: "< most_agents then return nil end",
    replace: "< 1e9 then return nil end",
    tests: ["shared/window/test/agents-per-key.test.ts", "test/integration/agents-per-key.test.ts"],
  },
  {
    name: "an agent that is not offline keeps its place",
    file: `${LUA}/accept/agents.lua`,
    find: "if tonumber(seen_at) >= offline_at then",
    replace: "if false then",
    tests: ["shared/window/test/agents-per-key.test.ts", "test/integration/agents-per-key.test.ts"],
  },
  {
    name: "no key has another's agent forgotten",
    file: `${LUA}/accept/agents.lua`,
    find: "if tonumber(redis.call('ZSCORE', batch.presence_key, oldest) or 0) < offline_at then",
    replace: "if true then",
    tests: ["shared/window/test/agents-per-key.test.ts"],
  },
  {
    name: "what is kept of a key's agents goes with them",
    file: `${LUA}/accept/presence.lua`,
    find: "batch.forget_at[agents_key] = batch.now + batch.forget_after",
    replace: "",
    tests: ["shared/window/test/agents-per-key.test.ts"],
  },
  {
    name: "body of an idempotency claim",
    file: `${LUA}/accept/publications.lua`,
    find: "first[1] == claim.body and",
    replace: "true and",
    tests: ["shared/window/test/claims.test.ts"],
  },
  {
    name: "no observer keeps an outcome from whom it is for",
    file: "shared/window/src/acceptance/acceptor.ts",
    find: `      } finally {
        item.done(acceptance);
      }`,
    replace: `        item.done(acceptance);
      } finally {
      }`,
    tests: ["shared/window/test/acceptor-faults.test.ts"],
  },
  {
    name: "faults in acceptance are logged",
    file: "shared/window/src/acceptance/acceptor.ts",
    find: "if (!(err instanceof ServiceError)) this.#logger.error({ err }, text);",
    replace: "",
    tests: ["shared/window/test/acceptor-faults.test.ts"],
  },
  {
    name: "one number of partitions in a window",
    file: "shared/window/src/process-window.ts",
    find: "if (found.partitions === this.#partitions) return found;",
    replace: "return found;",
    tests: ["shared/window/test/process-window.test.ts", "test/integration/partitions-differ.test.ts"],
  },
  {
    name: "no adoption brings back the window before a reset",
    file: `${LUA}/open_window.lua`,
    find: "tonumber(started_at) > tonumber(open[2])",
    replace: "open[1] ~= window_id and started_at ~= '0'",
    tests: ["shared/window/test/process-window.test.ts"],
  },
  {
    name: "a window is the same in all partitions before it is adopted",
    file: "shared/window/src/process-window.ts",
    find: "if (opened.every(([id]) => id === found.id)) return found;",
    replace: "if (opened) return found;",
    tests: ["shared/window/test/process-window.test.ts"],
  },
  {
    name: "no figures of two windows in one snapshot",
    file: "shared/window/src/snapshot.ts",
    find: "parts.every(({ windowId }) => windowId === control.windowId)",
    replace: "parts.length > 0",
    tests: ["shared/window/test/snapshot.test.ts"],
  },
  {
    name: "the keys of a script lie in one slot",
    file: "shared/window/src/redis/keys.ts",
    find: "CONTROL_PREFIX}feedback",
    replace: "KEY_PREFIX}feedback",
    tests: ["shared/window/test/slots.test.ts"],
  },
  {
    name: "partitions lie evenly over the primaries of a cluster",
    file: "shared/window/src/redis/partition-tags.ts",
    find: '"1mq", "2zm"',
    replace: '"1a", "2a"',
    tests: ["test/deploy/partition-tags.test.ts"],
  },
  {
    name: "a reset opens a window for another number of partitions",
    file: "shared/window/src/lua/reset_window.lua",
    find: " and open[3] == partitions",
    replace: "",
    tests: ["shared/window/test/reset.test.ts", "test/integration/partitions-differ.test.ts"],
  },
  {
    name: "readiness asks for the open window",
    file: "shared/window/src/readiness.ts",
    find: "await window.adopt();",
    replace: "await window.known();",
    tests: ["test/integration/partitions-differ.test.ts"],
  },
];
