import type { Command } from "../command.ts";
import { DECISION_OPTIONS, reject } from "../decide.ts";

export const command: Command = {
  help: `relay reject <session>: reject a session that was asked of you.

  relay reject ses_01h2x3y4z5a6b7c8d9e0f1g2h3 --reason "not this week"

  --reason TEXT  at most 500 characters, for the requester
${DECISION_OPTIONS}`,
  run: reject,
};
