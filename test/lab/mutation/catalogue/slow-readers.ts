import type { Mutation } from "../mutation.ts";

const CONNECTION = "services/ws-connector/src/connection/connection.ts";

/** What a recipient that reads slowly costs nobody else, and what its senders are told. */
export const SLOW_READER_MUTATIONS: readonly Mutation[] = [
  {
    name: "an agent is congested when more than half of the outbox waits",
    file: "services/ws-connector/src/connection/outbox.ts",
    find: "if (isCongested !== this.#isCongested)",
    replace: "if (false)",
    tests: ["services/ws-connector/test/outbox.test.ts", "test/conformance/slow-readers.test.ts"],
  },
  {
    name: "an outbox of which nothing drains is given up",
    file: "services/ws-connector/src/tasks.ts",
    find: "() => outboxBudget.check()",
    replace: "() => {}",
    tests: ["test/conformance/slow-readers.test.ts"],
  },
  {
    name: "a client that breaks the protocol and never hangs up loses its place soon",
    file: CONNECTION,
    find: "if (code === undefined && this.#socket.readyState !== this.#socket.CLOSED)",
    replace: "if (false)",
    tests: ["test/conformance/raw-frames.test.ts"],
  },
  {
    name: "nothing is published to a congested connection",
    file: "shared/window/src/lua/accept/delivery.lua",
    find: "if route.congested then",
    replace: "if false then",
    tests: ["shared/window/test/presence.test.ts", "test/conformance/slow-readers.test.ts"],
  },
  {
    name: "registers and heartbeats say whether their connection is congested",
    file: "shared/window/src/acceptance/acceptance-call.ts",
    find: 'item.isCongested?.() ? CONGESTED : ""',
    replace: '""',
    tests: ["shared/window/test/presence.test.ts", "test/conformance/slow-readers.test.ts"],
  },
  {
    name: "check-online says that a congested agent is not delivered to",
    file: "services/gateway/src/api/presence.ts",
    find: "can_deliver_realtime: canDeliverRealtime(presence)",
    replace: 'can_deliver_realtime: status === "online"',
    tests: ["services/gateway/test/presence.test.ts", "test/conformance/slow-readers.test.ts"],
  },
  {
    name: "a handoff is not begun with a congested target",
    file: "services/ops-reporting/src/guides/standing.ts",
    find: "return canDeliverRealtime(presence) ?",
    replace: 'return presence.status === "online" ?',
    tests: ["services/ops-reporting/test/guides/table.test.ts", "services/ops-reporting/test/guides/target.test.ts"],
  },
];
