import type { Mutation } from "../mutation.ts";

const IDENTITY = "shared/window/src/window-identity.ts";
const PREPARATION = "shared/window/src/acceptance/preparation.ts";
const PROCESS_WINDOW = "shared/window/src/process-window.ts";
const REACH = "shared/window/src/window-reach.ts";
const ONE_REDIS = ["shared/window/test/out-of-reach.test.ts"];
const CLUSTER = ["shared/window/test/cluster-window.test.ts"];

/** What goes on, and what does not, while a part of the window is out of reach or was lost. */
export const OUT_OF_REACH_MUTATIONS: readonly Mutation[] = [
  {
    name: "who knows a window goes on while the next one cannot be adopted",
    file: PROCESS_WINDOW,
    find: "if (this.#current === undefined) return await this.adoptOpenWindow();",
    replace: "if (this.#current === undefined || this.#adopting !== undefined) return await this.adoptOpenWindow();",
    tests: ONE_REDIS,
  },
  {
    name: "a window is open without a partition that is out of reach",
    file: "shared/window/src/window-records.ts",
    find: "if (!records.some(isRecord)) throw records[0];",
    replace: "if (!records.every(isRecord)) throw records.find((record) => !isRecord(record));",
    tests: ONE_REDIS,
  },
  {
    name: "a session request is counted without what is out of reach",
    file: PREPARATION,
    find: "countIn(p).catch(noneOutOfReach)",
    replace: "countIn(p)",
    tests: ONE_REDIS,
  },
  {
    name: "no session request passes a bound because Redis is slow",
    file: PREPARATION,
    find: "if (!isUndone(failure)) throw failure;",
    replace: "isUndone(failure);",
    tests: ONE_REDIS,
  },
  {
    name: "a partition that answers again is worked in",
    file: PROCESS_WINDOW,
    find: "if (isOther || isBack)",
    replace: "if (isOther)",
    tests: ONE_REDIS,
  },
  {
    name: "a partition that a reset did not reach brings nothing back",
    file: "shared/window/src/lua/raise_window.lua",
    find: "last and last >= tonumber(since) and known[3]",
    replace: "last and known[3]",
    tests: ONE_REDIS,
  },
  {
    name: "where the control slot was lost, the partitions say what the window was",
    file: "shared/window/src/window-records.ts",
    find: "control === null ? ofPartitions",
    replace: "control === null ? []",
    tests: ONE_REDIS,
  },
  {
    name: "where the control slot was lost, every partition that there may be is asked",
    file: IDENTITY,
    find: "? partitions : PARTITION_TAGS.length",
    replace: "? partitions : 1",
    tests: ONE_REDIS,
  },
  {
    name: "a reset deletes nothing of a partition whose state it does not know",
    file: "shared/window/src/window-sweep.ts",
    find: "if (unknown.some((prefix) => key.startsWith(prefix))) return false;",
    replace: "",
    tests: ONE_REDIS,
  },
  {
    name: "a reset changes nothing while a partition is out of reach",
    file: "shared/window/src/reset.ts",
    find: "if (outOfReach !== undefined) throw outOfReach;",
    replace: "",
    tests: ONE_REDIS,
  },
  {
    name: "a service is ready while some partition works",
    file: REACH,
    find: "countIn(p).catch((error: unknown) => error)",
    replace: "countIn(p)",
    tests: ONE_REDIS,
  },
  {
    name: "what cannot be used for the control slot cannot be for its neighbours",
    file: REACH,
    find: "if (fault !== null && sharesFault(link, p, fault)) return fault;",
    replace: "",
    tests: ["test/integration/redis-full.test.ts"],
  },
  {
    name: "readiness asks for the open window",
    file: REACH,
    find: "await window.adoptOpenWindow()",
    replace: "await window.known()",
    tests: CLUSTER,
  },
  {
    name: "who knows a window goes on in it while the control slot is lost",
    file: REACH,
    find: "if (fault !== null && (isWindowless(fault) || !window.isKnown)) return reachReason(fault);",
    replace: "if (fault !== null) return reachReason(fault);",
    tests: CLUSTER,
  },
  {
    name: "who reads alone works in a partition that somebody has again",
    file: PROCESS_WINDOW,
    find: "options.link.onMoved(() => void this.adoptIfChanged().catch(() => {}));",
    replace: "",
    tests: CLUSTER,
  },
  {
    name: "the partitions that a service does not reach are counted",
    file: "shared/window/src/observe.ts",
    find: "outOfReach(redis, window.partitions).length",
    replace: "0",
    tests: CLUSTER,
  },
  {
    name: "a control slot that is behind undoes no reset",
    file: "shared/window/src/window-records.ts",
    find: "control === null ? ofPartitions : [control, ...ofPartitions]",
    replace: "control === null ? ofPartitions : [control]",
    tests: ["shared/window/test/next-window.test.ts"],
  },
  {
    name: "relay check finds fault where the agent's partition is out of reach",
    file: "connector/src/cli/commands/check.ts",
    find: "if (relay && credentials) await",
    replace: "if (!relay && credentials) await",
    tests: ["test/integration/lost-shard.test.ts"],
  },
  {
    name: "the log tells which partitions go out of reach, and of those that are back",
    file: "shared/window/src/reach-log.ts",
    find: "if (hasChanged) this.#tell(missing);",
    replace: "",
    tests: ["shared/window/test/out-of-reach.test.ts"],
  },
  {
    name: "pods of one process are told apart in its log",
    file: "deploy/local/relay.ts",
    find: "this.logger.child({ pod: podLabel(this.#services.of(name).length) })",
    replace: "this.logger",
    tests: ["test/integration/lost-shard.test.ts"],
  },
  {
    name: "who was told that a link is down is told that it is up again",
    file: "shared/window/src/redis/link-state.ts",
    find: 'this.#reported === undefined ? "info" : "warn"',
    replace: '"info"',
    tests: ["shared/window/test/link-down.test.ts", "test/integration/lost-shard.test.ts"],
  },
  {
    name: "who is refused is told which partition is out of reach",
    file: "shared/window/src/redis/cluster-links.ts",
    find: "return areOthersUp ? new OutOfReachError(",
    replace: "return !areOthersUp ? new OutOfReachError(",
    tests: ["test/integration/lost-shard.test.ts"],
  },
  {
    name: "a link that has to be mended by somebody is told before one that only waits",
    file: "shared/window/src/redis/link-down.ts",
    find: "down.find(isMisconfigured) ?? ",
    replace: "",
    tests: ["shared/window/test/link-down.test.ts"],
  },
  {
    name: "counts of online agents say what they are without",
    file: "services/gateway/src/api/endpoints/presence.ts",
    find: "const isComplete = missing.length === 0;",
    replace: "const isComplete = missing.length >= 0;",
    tests: ["test/integration/lost-shard.test.ts"],
  },
];
