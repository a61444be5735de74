import type { Mutation } from "../mutation.ts";

const REDIS = "shared/window/src/redis";
const LINKS = "shared/window/test/cluster-links.test.ts";
const FAILURES = "shared/window/test/cluster-failures.test.ts";
const MOVES = "shared/window/test/cluster-moves.test.ts";
const COUNTS = "shared/window/test/cluster-counts.test.ts";
const RESET = "shared/window/test/cluster-reset.test.ts";
const METRICS = "shared/window/test/cluster-metrics.test.ts";
const INQUIRY = "shared/window/test/cluster-inquiry.test.ts";
const SLOT_MAP = "shared/window/test/slot-map.test.ts";
const CHANNEL = "shared/window/test/cluster-channel.test.ts";
const SETUP = "shared/window/test/cluster-setup.test.ts";

/** What holds on a Redis Cluster, whatever befalls its nodes and slots. */
export const CLUSTER_MUTATIONS: readonly Mutation[] = [
  {
    name: "nothing starts with one partition on a cluster",
    file: "shared/runtime/src/settings-catalogue.ts",
    find: "leastOnCluster: 2",
    replace: "leastOnCluster: 1",
    tests: ["shared/runtime/test/settings.test.ts"],
  },
  {
    name: "a cluster is sent nothing again whose outcome is unknown",
    file: `${REDIS}/cluster-links.ts`,
    find: "return isUnserved(err) || (owner?.starting !== undefined && err.cause instanceof LinkDownError);",
    replace: "return owner !== undefined || isUnserved(err) || err.cause instanceof LinkDownError;",
    tests: [LINKS],
  },
  {
    name: "a primary that hung while its replica was promoted does nothing late",
    file: "shared/window/src/lua/lib/deadline.lua",
    find: "return now > tonumber(deadline) or",
    replace: "return",
    tests: [FAILURES],
  },
  {
    name: "a call waits for the first connection to a primary that was just learnt of",
    file: `${REDIS}/cluster-links.ts`,
    find: "return isUnserved(err) || (owner?.starting !== undefined && err.cause instanceof LinkDownError);",
    replace: "return isUnserved(err);",
    tests: [LINKS],
  },
  {
    name: "who says MOVED is asked where the slot is",
    file: `${REDIS}/cluster-links.ts`,
    find: 'if (answer !== "ASK" && answer !== "TRYAGAIN") {',
    replace: 'if (answer !== "ASK" && answer !== "TRYAGAIN" && answer !== "MOVED") {',
    tests: [LINKS],
  },
  {
    name: "a call that no node serves ends within a second",
    file: `${REDIS}/cluster-links.ts`,
    find: "if (performance.now() < endsAt) continue;",
    replace: "if (performance.now() < endsAt + 5000) continue;",
    tests: [LINKS],
  },
  {
    name: "what a node does not serve was not done, and its caller knows",
    file: `${REDIS}/link-down.ts`,
    find: " || isUnserved(failure);",
    replace: ";",
    tests: [LINKS],
  },
  {
    name: "no address of a node in the log",
    file: `${REDIS}/link-down.ts`,
    find: "|(?<=^(?:MOVED|ASK)) /",
    replace: "/",
    tests: [LINKS],
  },
  {
    name: "calls under way settle before the link to a former primary stops",
    file: `${REDIS}/cluster-member.ts`,
    find: "if (this.#isRetired && this.#underWay === 0)",
    replace: "if (this.#isRetired)",
    tests: [LINKS],
  },
  {
    name: "no link stays to a node that has no slots any more",
    file: `${REDIS}/cluster-members.ts`,
    find: "if (!members.has(key)) member.retire();",
    replace: "members.has(key);",
    tests: [LINKS],
  },
  {
    name: "the slot map is asked for when a link is lost",
    file: `${REDIS}/cluster-members.ts`,
    find: "this.#refreshWithin(LOST_LINK_MS);",
    replace: "wasUp = false;",
    tests: [LINKS],
  },
  {
    name: "of nodes that disagree the one that knows most is believed",
    file: `${REDIS}/slot-map.ts`,
    find: "Number(b.isWhole) - Number(a.isWhole) || b.clusterEpoch - a.clusterEpoch",
    replace: "0",
    tests: [SLOT_MAP],
  },
  {
    name: "a cluster that wants all slots served is found out",
    file: `${REDIS}/server-check.ts`,
    find: 'if (count("fail") > 0 || count("assigned") < SLOTS) {',
    replace: "if (false) {",
    tests: [SETUP],
  },
  {
    name: "no node of a cluster where REDIS_URL names one Redis",
    file: `${REDIS}/server-check.ts`,
    find: "if (/^cluster_enabled:1\\b/m.test(info) !== isNode) {",
    replace: "if (false) {",
    tests: [SETUP],
  },
  {
    name: "a permission is known from a node that does not have the slot, too",
    file: `${REDIS}/link-down.ts`,
    find: 'if (linkDown(failure).kind !== "slots") throw failure;',
    replace: "throw failure;",
    tests: [SETUP],
  },
  {
    name: "a slot that is elsewhere is no failure of a link",
    file: `${REDIS}/redis-link.ts`,
    find: 'performance.now() - sentAt, failure !== "slots");',
    replace: "performance.now() - sentAt, true);",
    tests: [SETUP],
  },
  {
    name: "what must be done when a primary is back is tried until it is done",
    file: `${REDIS}/usable-listeners.ts`,
    find: "this.#runLater();",
    replace: "this.#isDue = false;",
    tests: [SETUP],
  },
  {
    name: "the time of a server that was not heard of is not 1970",
    file: `${REDIS}/cluster-links.ts`,
    find: "Math.floor(performance.timeOrigin + monotonicMs)",
    replace: "Math.floor(monotonicMs)",
    tests: [SETUP],
  },
  {
    name: "a decision that was under way when its slot was moved goes on afterwards",
    file: "shared/window/src/lua/reserve_decision.lua",
    find: "redis.call('SISMEMBER', bucket_key, text_digest) == 1 and 'reserved' or 'taken'",
    replace: "'taken'",
    tests: [MOVES],
  },
  {
    name: "counts whose write had no answer are counted once",
    file: "shared/window/src/lua/flush_counters.lua",
    find: "if call('HGET', flushes_key, process) == flush then return 'ok' end",
    replace: "",
    tests: ["shared/window/test/counters.test.ts"],
  },
  {
    name: "counts are kept through a failover",
    file: "shared/window/src/counters.ts",
    find: "if (this.#unwritten !== undefined) await this.#write(this.#unwritten);",
    replace: "this.#unwritten = undefined;",
    tests: [COUNTS],
  },
  {
    name: "counts that are held for too long are lost, and that is counted",
    file: "shared/window/src/counters.ts",
    find: "this.#dropOverdue();",
    replace: "",
    tests: ["shared/window/test/counters.test.ts"],
  },
  {
    name: "a partition that takes no releases holds up no other's",
    file: "shared/window/src/routes.ts",
    find: "!this.#running.has(p)",
    replace: "this.#running.size === 0",
    tests: ["shared/window/test/routes.test.ts"],
  },
  {
    name: "a cluster without the majority of its primaries blames no setting",
    file: `${REDIS}/server-check.ts`,
    find: 'count("pfail") > 0',
    replace: "false",
    tests: [SETUP],
  },
  {
    name: "who waits for an agent's deliveries asks in the agent's partition",
    file: "shared/window/src/server-channel.ts",
    find: "ready.find(({ partition }) => partition === preferred) ?? ready[0]",
    replace: "ready[0]",
    tests: ["shared/window/test/pod-channel.test.ts"],
  },
  {
    name: "a reset deletes at every primary",
    file: "shared/window/src/window-sweep.ts",
    find: "for (const link of calls.links) {\n    try",
    replace: "for (const link of calls.links.slice(1)) {\n    try",
    tests: [RESET],
  },
  {
    name: "a reset that loses a shard says what it left",
    file: "shared/window/src/window-sweep.ts",
    find: "if (!isUnavailable(error)) throw error;\n      silent.add(link);",
    replace: "throw error;",
    tests: [RESET],
  },
  {
    name: "a node that left the cluster has no series",
    file: "shared/runtime/src/metrics/service-metrics.ts",
    find: "this.reset();\n        for (const [values, value]",
    replace: "for (const [values, value]",
    tests: ["shared/runtime/test/metrics/service-metrics.test.ts", METRICS],
  },
  {
    name: "a cluster of which no node is known is down",
    file: "shared/window/src/observe.ts",
    find: "redis.links.length === 0 ? [redis] : redis.links",
    replace: "redis.links",
    tests: [METRICS],
  },
  {
    name: "who waits for what was published waits while its partition is being left",
    file: "shared/window/src/pod-channel.ts",
    find: ", ...left]);",
    replace: "]);",
    tests: [CHANNEL],
  },
  {
    name: "a node that was cut off leads nobody back",
    file: `${REDIS}/cluster-inquiry.ts`,
    find: "words.filter((word) => !isOutdated(word, this.#believed))",
    replace: "words",
    tests: [INQUIRY],
  },
  {
    name: "who starts asks several nodes of a cluster",
    file: `${REDIS}/cluster-inquiry.ts`,
    find: "const ASKED = 3;",
    replace: "const ASKED = 1;",
    tests: [LINKS],
  },
  {
    name: "a cluster that was made anew is believed",
    file: `${REDIS}/slot-map.ts`,
    find: "word.clusterEpoch < last.clusterEpoch && isSameCluster(word, last)",
    replace: "word.clusterEpoch < last.clusterEpoch",
    tests: [SLOT_MAP, INQUIRY],
  },
  {
    name: "the epoch of a node that is cut off is no bar for the others",
    file: `${REDIS}/slot-map.ts`,
    find: "word.isWhole ? word.clusterEpoch : 0",
    replace: "word.clusterEpoch",
    tests: [SLOT_MAP],
  },
  {
    name: "a listener that throws keeps nobody else from being told that Redis is usable",
    file: `${REDIS}/usable-listeners.ts`,
    find: "async (listener) => await listener()",
    replace: "(listener) => listener()",
    tests: ["shared/window/test/usable-listeners.test.ts"],
  },
  {
    name: "a channel that is subscribed to while the link is set up is heard",
    file: `${REDIS}/redis-link.ts`,
    find: "while (connection === this.#connection && this.#subscriptions.isBehind)",
    replace: "while (false)",
    tests: ["shared/window/test/redis-link.test.ts"],
  },
];
