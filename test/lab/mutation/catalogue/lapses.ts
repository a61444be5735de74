import type { Mutation } from "../mutation.ts";

const REDIS = "shared/window/src/redis";
const LINKS = "shared/window/test/cluster-links.test.ts";
const SEEN = "test/integration/cluster-completeness.test.ts";
const LAPSES = "shared/window/test/cluster-figures.test.ts";
const INQUIRY = "shared/window/test/cluster-members.test.ts";
const MEMBER = "shared/window/test/cluster-members.test.ts";

/** What a report may lack after a Redis Cluster lost something, and says so. */
export const LAPSE_MUTATIONS: readonly Mutation[] = [
  {
    name: "a promotion that nobody asked for is recorded",
    file: "shared/window/src/lapses.ts",
    find: "await recordPromotions(link, window, noted);",
    replace: "",
    tests: [LAPSES],
  },
  {
    name: "a promotion is recorded of a primary that was cut off from the others alone",
    file: `${REDIS}/cluster-member.ts`,
    find: "if (isCutOff(err)) this.#fellSilent(REDIS_LIMITS.unheardMs);",
    replace: "isCutOff(err);",
    tests: [MEMBER],
  },
  {
    name: "a promotion is recorded of a primary that was cut off and still acknowledges",
    file: `${REDIS}/cluster-members.ts`,
    find: "if (silentSince === undefined) void this.#tellIfLeftBehind(member, slot, hasSlot);",
    replace: "if (silentSince === undefined) return;",
    tests: [LAPSES],
  },
  {
    name: "a promotion that is found out later than the new primary is recorded, too",
    file: `${REDIS}/cluster-links.ts`,
    find: "void this.#usableListeners.run();\n      },",
    replace: "},",
    tests: [LAPSES],
  },
  {
    name: "what a replica that lags had not received may be lacking",
    file: `${REDIS}/cluster-member.ts`,
    find: "Math.min(silentSince, this.link.receivedUntil ?? Number.NEGATIVE_INFINITY)",
    replace: "silentSince",
    tests: [LAPSES],
  },
  {
    name: "of several replicas the one counts that has received least",
    file: `${REDIS}/replica-progress.ts`,
    find: ": Math.min(...acknowledged);",
    replace: ": Math.max(...acknowledged);",
    tests: ["shared/window/test/cluster-members.test.ts"],
  },
  {
    name: "who knows of the election that replaced it was not cut off",
    file: `${REDIS}/cluster-inquiry.ts`,
    find: "clusterEpoch < believed.clusterEpoch && ",
    replace: "",
    tests: [INQUIRY],
  },
  {
    name: "who knows who has its place was not cut off",
    file: `${REDIS}/cluster-inquiry.ts`,
    find: " && primaryOf(map, slot) !== primaryOf(believed.map, slot)",
    replace: "",
    tests: [INQUIRY],
  },
  {
    name: "what a primary answered while it was cut off may be lacking",
    file: `${REDIS}/limits.ts`,
    find: "unheardMs: 7500",
    replace: "unheardMs: 0",
    tests: [LAPSES],
  },
  {
    name: "a failover that was asked for is no lapse",
    file: `${REDIS}/cluster-members.ts`,
    find: "const { silentSince } = member;",
    replace: "const { silentSince = 0 } = member;",
    tests: [LAPSES],
  },
  {
    name: "a promotion that was seen counts before it is recorded",
    file: "services/ops-reporting/src/window-reader.ts",
    find: "new Map([...this.#promotions.in(keys, now), ...snapshot.lapses])",
    replace: "new Map(snapshot.lapses)",
    tests: [SEEN],
  },
  {
    name: "a promotion that was seen ends with a window that keeps nothing",
    file: "shared/window/src/lapses.ts",
    find: "unixTimeOf(seenAt) > beginningOf(keys)",
    replace: "unixTimeOf(seenAt) > 0",
    tests: [SEEN],
  },
  {
    name: "figures are read anew once a partition of theirs is out of reach",
    file: "services/ops-reporting/src/window-reader.ts",
    find: "!missing.includes(p) && !isReached(p)",
    replace: "!missing.includes(p) && false",
    tests: [SEEN],
  },
  {
    name: "of those who record one promotion the earliest time is kept",
    file: "shared/window/src/lua/record_promotions.lua",
    find: "math.min(since_of[place] or since, since)",
    replace: "since_of[place] or since",
    tests: ["shared/window/test/snapshot.test.ts"],
  },
  {
    name: "a later promotion does not have an earlier one forgotten",
    file: "shared/window/src/lua/record_promotions.lua",
    find: "math.min(since_of[place] or since, since)",
    replace: "since",
    tests: ["shared/window/test/snapshot.test.ts"],
  },
  {
    name: "who never reached a primary does not say until when it answered",
    file: `${REDIS}/cluster-member.ts`,
    find: "this.#wasUp ? unheardMs : Number.POSITIVE_INFINITY",
    replace: "unheardMs",
    tests: [LINKS],
  },
  {
    name: "a partition that was lost is known by its generation",
    file: "shared/window/src/lapses.ts",
    find: "generation !== null && generation > began",
    replace: "false",
    tests: ["shared/window/test/snapshot.test.ts"],
  },
  {
    name: "what a window may lack ends with a window that keeps nothing",
    file: "shared/window/src/lua/begin_window.lua",
    find: "redis.call('HSET', window_key, 'promoted', '')",
    replace: "",
    tests: ["shared/window/test/snapshot.test.ts"],
  },
  {
    name: "a lost shard costs reports its own figures alone",
    file: "shared/window/src/reached-partitions.ts",
    find: "found.length === 0 || !isUnavailable(reason)",
    replace: "true",
    tests: [LAPSES],
  },
  {
    name: "a report says that partitions are missing",
    file: "services/ops-reporting/src/reports/completeness.ts",
    find: "[...source.missing, ...(presence?.missing ?? [])]",
    replace: "[...(presence?.missing ?? [])]",
    tests: ["services/ops-reporting/test/completeness.test.ts"],
  },
  {
    name: "the log tells of a promotion that nobody asked for",
    file: "shared/window/src/lapses.ts",
    find: "logger.warn({ link: link.name, places }",
    replace: "logger.debug({ link: link.name, places }",
    tests: ["shared/window/test/cluster-figures.test.ts"],
  },
  {
    name: "a primary that forgot the others does not hide them",
    file: "shared/window/src/redis/cluster-inquiry.ts",
    find: " && servedSlots(word.map) === SLOTS",
    replace: "",
    tests: ["shared/window/test/cluster-figures.test.ts"],
  },
];
