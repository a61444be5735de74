import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";
const LEASES = ["shared/window/test/pod-leases.test.ts"];
const ASSERTS = ["shared/window/test/routes.test.ts"];
const CLUSTER = ["shared/window/test/cluster-acceptance.test.ts"];

/** That a pod that nobody hears for a moment loses no agent, and that no epoch is given twice. */
export const POD_LEASE_MUTATIONS: readonly Mutation[] = [
  {
    name: "a pod that nobody hears for a moment keeps its routes",
    file: `${LUA}/accept/pod_messages.lua`,
    find: "local gone = is_gone(batch, message.pod)",
    replace: "local gone = true",
    tests: LEASES,
  },
  {
    name: "who was superseded takes nothing back while its successor is not heard",
    file: `${LUA}/accept/presence.lua`,
    find: "if not is_gone(batch, owner.pod) then",
    replace: "if false then",
    tests: LEASES,
  },
  {
    name: "so on a cluster, while a slot is moved and a replica takes over",
    file: `${LUA}/accept/presence.lua`,
    find: "if not is_gone(batch, owner.pod) then",
    replace: "if false then",
    tests: CLUSTER,
  },
  {
    name: "who is not heard is not online",
    file: `${LUA}/accept/pod_messages.lua`,
    find: "redis.call('ZREM', batch.online_key, target.agent)",
    replace: "string.len(target.agent)",
    tests: LEASES,
  },
  {
    name: "nobody is told that an agent is online that is not heard",
    file: `${LUA}/read_presence.lua`,
    find: "if route and redis.call('ZSCORE', online_key, agent) then",
    replace: "if route then",
    tests: LEASES,
  },
  {
    name: "nor by what is told of a target",
    file: `${LUA}/read_target.lua`,
    find: "if route and redis.call('ZSCORE', online_key, agent) then",
    replace: "if route then",
    tests: LEASES,
  },
  {
    name: "a lease ends",
    file: `${LUA}/accept/leases.lua`,
    find: "and batch.now - renewed_at > leases.lease",
    replace: "and false",
    tests: LEASES,
  },
  {
    name: "no lease is over while nobody renews one",
    file: `${LUA}/accept/leases.lua`,
    find: "batch.now - newest <= leases.gap and ",
    replace: "",
    tests: LEASES,
  },
  {
    name: "a lease that was taken away is over, however late others are renewed",
    file: `${LUA}/accept/leases.lua`,
    find: "return not renewed_at or batch.now - newest <= leases.gap and",
    replace: "return batch.now - newest <= leases.gap and not renewed_at or batch.now - newest <= leases.gap and",
    tests: LEASES,
  },
  {
    name: "a pod that is late itself keeps no dead pod's lease",
    file: "shared/window/src/pod-channel.ts",
    find: "Math.ceil(pauseMs) + partitionSilenceMs",
    replace: "REDIS_LIMITS.podLeaseGapMs",
    tests: LEASES,
  },
  {
    name: "what a pod waited counts until there is an answer",
    file: "shared/window/src/server-channel.ts",
    find: "Math.max(subscription.pauseMs, now - (subscription.sentAt ?? now))",
    replace: "0",
    tests: LEASES,
  },
  {
    name: "leases begin anew after a time without any renewal",
    file: `${LUA}/renew_lease.lua`,
    find: "if newest and now - newest > gap then",
    replace: "if false then",
    tests: LEASES,
  },
  {
    name: "leases outlive a reset",
    file: "shared/window/src/window-sweep.ts",
    find: "|pods$|",
    replace: "|",
    tests: LEASES,
  },
  {
    name: "a full Redis renews leases",
    file: `${LUA}/renew_lease.lua`,
    find: "redis.call('PEXPIRE', pods_key, kept)",
    replace: "",
    tests: LEASES,
  },
  {
    name: "a lease goes on while the pod's own channel is down",
    file: "shared/window/src/server-channel.ts",
    find: "await Promise.all(this.#due().map((subscription) => this.#sendLoopback(subscription)));",
    replace: "",
    tests: CLUSTER,
  },
  {
    name: "no epoch is given twice that a pod knows",
    file: `${LUA}/accept.lua`,
    find: "redis.call('SET', clock_key, epoch)",
    replace: "string.len(epoch)",
    tests: LEASES,
  },
  {
    name: "asserts carry the highest epoch that their pod knows",
    file: "shared/window/src/route-asserter.ts",
    find: "this.#epochs.highestIn(p),",
    replace: "0,",
    tests: LEASES,
  },
  {
    name: "a pod knows the epochs of takeovers",
    file: "services/ws-connector/src/deliveries.ts",
    find: "epochs.note(agent, epoch);",
    replace: "",
    tests: ["services/ws-connector/test/deliveries.test.ts"],
  },
  {
    name: "an assert gives a connection the epoch back that a replica forgot",
    file: `${LUA}/assert_routes.lua`,
    find: "if owns and not is_older then",
    replace: "if owns then",
    tests: ASSERTS,
  },
  {
    name: "an assert brings back online who kept its route",
    file: `${LUA}/assert_routes.lua`,
    find: "if redis.call('ZSCORE', online_key, agent) then",
    replace: "if true then",
    tests: ASSERTS,
  },
  {
    name: "a connection does not forget the epoch that it held",
    file: "services/ws-connector/src/agent-transitions.ts",
    find: "Math.max(epoch, before?.epoch ?? 0)",
    replace: "epoch",
    tests: ["services/ws-connector/test/ownership.test.ts"],
  },
  {
    name: "a pod leaves the former primary of a partition",
    file: "shared/window/src/pod-channel.ts",
    find: "if (former !== undefined) await this.#leave(former, p);",
    replace: "",
    tests: ["shared/window/test/cluster-services.test.ts"],
  },
];
