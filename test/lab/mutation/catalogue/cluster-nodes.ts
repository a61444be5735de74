import type { Mutation } from "../mutation.ts";

/** Who reaches the nodes of a Redis Cluster. */
export const CLUSTER_NODE_MUTATIONS: readonly Mutation[] = [
  {
    name: "a Redis Cluster of npm run start:cluster asks for its password",
    file: "deploy/local/private-nodes.ts",
    find: "requirepass ",
    replace: "# ",
    tests: ["test/local/start-relay.test.ts"],
  },
  {
    name: "who makes a Redis Cluster can do nothing else there",
    file: "deploy/redis/cluster-users.acl",
    find: "+cluster|replicate +cluster|set-config-epoch",
    replace: "+cluster|replicate +cluster|set-config-epoch +config|get",
    tests: ["test/deploy/redis-cluster-start.test.ts"],
  },
  {
    name: "a primary that died leaves its place to its replica",
    file: "deploy/redis/start.sh",
    find: "  wait $!\n",
    replace: "",
    tests: ["test/deploy/redis-cluster-start.test.ts"],
  },
  {
    name: "the password of a replica stands in no argument of its process",
    file: "deploy/redis/start.sh",
    find: '--include "$folder/replica.conf"',
    replace: '--masterauth "$replica"',
    tests: ["test/deploy/redis-start.test.ts"],
  },
  {
    name: "slots of a shard that is gone get a new primary",
    file: "deploy/redis/mend-cluster.ts",
    find: "const owned = parts.slice(0, empty.length);",
    replace: "const owned = parts.slice(0, 0);",
    tests: ["test/deploy/mend-redis-cluster.test.ts"],
  },
  {
    name: "a Redis Cluster whose slots have no owner is not called whole",
    file: "deploy/redis/mend-cluster.ts",
    find: "if (left.length > 0) throw",
    replace: "if (left.length < 0) throw",
    tests: ["test/deploy/mend-redis-cluster.test.ts"],
  },
  {
    name: "the replica that nobody can elect is promoted when its primary is gone",
    file: "deploy/redis/mend-cluster.ts",
    find: 'await heir.ask("CLUSTER FAILOVER TAKEOVER")',
    replace: "await heir.ask()",
    tests: ["test/deploy/mend-redis-cluster.test.ts"],
  },
  {
    name: "the replica that nobody elects in time is promoted when its primary is gone",
    file: "deploy/redis/mend-cluster.ts",
    find: "known, isLed).catch(() => {});",
    replace: "known, isLed);",
    tests: ["test/deploy/mend-cluster.test.ts"],
  },
  {
    name: "nobody waits for an election that too few primaries are left for",
    file: "deploy/redis/mend-cluster.ts",
    find: "gone.length < primaries.length / 2",
    replace: "true",
    tests: ["test/deploy/mend-cluster.test.ts"],
  },
  {
    name: "a replica that others of its Redis Cluster do not know is introduced to them",
    file: "deploy/redis/mend-cluster.ts",
    find: "await introduce(known);",
    replace: "false;",
    tests: ["test/deploy/mend-redis-cluster.test.ts"],
  },
  {
    name: "create-cluster.ts ends when all nodes of a Redis Cluster know each other",
    file: "deploy/redis/mend-cluster.ts",
    find: "  await untilAcquainted([...known, ...empty]);\n",
    replace: "",
    tests: ["test/deploy/mend-cluster.test.ts"],
  },
];
