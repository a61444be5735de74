import { AGENT_ID, AGENT_SCHEME } from "../agent-id.ts";
import { usageError } from "./failure.ts";

/**
 * The agent that a word of the command line names: an id, or a name alone (`bob` is agent://bob). What has a scheme is left for
 * the relay to judge. @throws {Failure} `usage`.
 */
export function targetOf(word: string): string {
  if (word.includes("://")) return word;
  const id = AGENT_SCHEME + word;
  if (AGENT_ID.test(id)) return id;
  throw usageError("The target is not an agent.", "Name it first: agent://bob, or bob.");
}
