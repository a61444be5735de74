import type { Command } from "../command.ts";
import { approve, DECISION_OPTIONS } from "../decide.ts";

export const command: Command = {
  help: `relay approve <session>: approve a session that was asked of you.

  relay approve ses_01h2x3y4z5a6b7c8d9e0f1g2h3

${DECISION_OPTIONS}`,
  run: approve,
};
