import type { Answer, Entry } from "../../../support/ledger.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";

/** Of each agent that something was refused of: ms from the first `unavailable` to the next acceptance of what is for it, or its own. */
export function unavailabilities(entries: readonly Entry[], agents: readonly Pick<ReturningAgent, "id">[]): number[] {
  return agents.flatMap(({ id }) => {
    const answers = entries.filter(({ from, to }) => (to ?? from) === id).flatMap(answersOf);
    answers.sort((one, other) => one.at - other.at);
    const refused = answers.find((answer) => !answer.accepted && answer.code === "unavailable")?.at;
    if (refused === undefined) return [];
    const served = answers.find(({ accepted, at }) => accepted && at > refused)?.at;
    return served === undefined ? [] : [served - refused];
  });
}

function answersOf({ attempts }: Entry): Answer[] {
  return attempts.flatMap(({ answer }) => answer ?? []);
}
