import { soakFromCommandLine } from "../command-line.ts";
import { soakConnectors } from "./soak.ts";
import { sectionsOf } from "./verdict.ts";

/**
 * `npm run soak:connectors`: do agents of both languages keep their messages while everything around them is killed in turn?
 * Exit code 1 when something is lost, comes twice or out of order, or grows. Source: docs/reliability.md#soak-of-the-connectors.
 */
await soakFromCommandLine({
  name: "soak-connectors",
  command: "npm run soak:connectors",
  agents: ["100", "how many of each language (100)"],
  run: async (plan, say) => {
    const outcome = await soakConnectors(plan, say);
    return { sections: sectionsOf(plan, outcome), broken: [...outcome.violations, ...outcome.unexpectedEnds], outcome };
  },
});
