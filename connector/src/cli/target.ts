import { AGENT_ID, AGENT_SCHEME, agentIdProblem } from "../agent-id.ts";
import { usageError } from "./failure.ts";

/** The agent that a word of the command line names: an id, or a name alone (`bob` is agent://bob). @throws {Failure} `usage`. */
export function targetOf(word: string): string {
  if (AGENT_ID.test(AGENT_SCHEME + word)) return AGENT_SCHEME + word;
  const problem = agentIdProblem(word);
  if (problem === undefined) return word;
  throw usageError(`The target ${problem}.`, "Name it first, such as agent://bob.");
}
