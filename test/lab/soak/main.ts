import { soakFromCommandLine } from "./command-line.ts";
import { soak } from "./soak.ts";
import { sectionsOf } from "./verdict.ts";

/**
 * `npm run soak`: does the relay hold level? Agents by the thousand, steady traffic, connections that come and go,
 * connectors that are replaced; exit code 1 when something grows, is lost, or ends. Source: docs/reliability.md.
 */
await soakFromCommandLine({
  name: "soak",
  command: "npm run soak",
  agents: ["2000", "how many (2000)"],
  run: async (plan, say) => {
    const { samples, outcome } = await soak({ ...plan, say });
    const { violations, unexpectedEnds, errorLines } = outcome;
    const broken = [...violations, ...unexpectedEnds, ...errorLines];
    return { sections: sectionsOf(plan, samples, outcome), broken, outcome: { samples, ...outcome } };
  },
});
