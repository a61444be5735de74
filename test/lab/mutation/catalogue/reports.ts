import type { Mutation } from "../mutation.ts";

const REPORTING = "services/ops-reporting/src";

/** How much reports read, how old what they show may be, and whose it is. */
export const REPORT_MUTATIONS: readonly Mutation[] = [
  {
    name: "reports share a read",
    file: `${REPORTING}/shared-read.ts`,
    find: "this.#last = last;",
    replace: "",
    tests: ["services/ops-reporting/test/shared-read.test.ts", "services/ops-reporting/test/window-reader.test.ts"],
  },
  {
    name: "a shared read is not kept for ever",
    file: `${REPORTING}/shared-read.ts`,
    find: "now - this.#last.sentAt < this.#keptMs",
    replace: "true",
    tests: ["services/ops-reporting/test/shared-read.test.ts", "services/ops-reporting/test/window-reader.test.ts"],
  },
  {
    name: "a failed read is not kept",
    file: `${REPORTING}/shared-read.ts`,
    find: "if (this.#last === last) this.#last = undefined;",
    replace: "",
    tests: ["services/ops-reporting/test/shared-read.test.ts"],
  },
  {
    name: "no report of two windows",
    file: `${REPORTING}/window-reader.ts`,
    find: "if (snapshot.windowId !== windowId) return null;",
    replace: "",
    tests: ["services/ops-reporting/test/window-reader.test.ts"],
  },
  {
    name: "nothing that was read in the last window is shown in the next one",
    file: `${REPORTING}/window-reader.ts`,
    find: "read.forget();",
    replace: "read;",
    tests: ["services/ops-reporting/test/window-reader.test.ts"],
  },
  {
    name: "only two reports read journeys",
    file: `${REPORTING}/endpoints/reports.ts`,
    find: 'report(diagnostics, "presence", "gatewayKeys", "connections")',
    replace: 'report(diagnostics, "presence", "gatewayKeys", "connections", "journeys" as never)',
    tests: ["services/ops-reporting/test/report-cost.test.ts"],
  },
  {
    name: "a gate is its target's",
    file: `${REPORTING}/guides/guide-context.ts`,
    find: "target === null ?",
    replace: "true ?",
    tests: ["services/ops-reporting/test/guides/target.test.ts"],
  },
  {
    name: "a target's no ends the way",
    file: `${REPORTING}/guides/standing.ts`,
    find: 'decision === "rejected" || decision === "expired"',
    replace: "false",
    tests: ["services/ops-reporting/test/guides/target.test.ts"],
  },
  {
    name: "what is missing is asked for",
    file: `${REPORTING}/guides/next.ts`,
    find: "if (missing.length > 0) {",
    replace: "if (false) {",
    tests: ["services/ops-reporting/test/guides/documents.test.ts"],
  },
  {
    name: "no target of the window before",
    file: `${REPORTING}/window-reader.ts`,
    find: "...Object.values(this.#parts), this.#targets]",
    replace: "...Object.values(this.#parts)]",
    tests: ["services/ops-reporting/test/window-reader.test.ts"],
  },
  {
    name: "reads of targets are bounded",
    file: `${REPORTING}/shared-read.ts`,
    find: "if (this.#reads.size > this.#most)",
    replace: "if (false)",
    tests: ["services/ops-reporting/test/shared-read.test.ts"],
  },
  {
    name: "a target's proof is kept apart",
    file: "shared/window/src/lua/accept/sessions.lua",
    find: "asked_of(batch, newcomer.asked_key).proof = table.concat(words, ' ')",
    replace: "",
    tests: ["shared/window/test/targets.test.ts"],
  },
  {
    name: "a target tells of its own sessions only",
    file: "shared/window/src/lua/read_target.lua",
    find: "if target == records.agent_name(agent) then",
    replace: "if target then",
    tests: ["shared/window/test/targets.test.ts"],
  },
];
