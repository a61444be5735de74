import { z } from "zod";
import { ISSUER_PATTERN } from "../wire/credential.ts";
import { TEXT_LIMITS } from "../wire/limits.ts";
import { AGENT_PATTERN_PATTERN } from "./agent-id.ts";

/** Whom an agent accepts envelopes from: `accept_from` of its agent.register. Source: docs/protocol.md#accept_from. */

/** What the entry of an issuer begins with. */
export const ISSUER_ENTRY_PREFIX = "issuer:";

const unanchored = ({ source }: RegExp) => source.replace(/^\^/, "").replace(/\$$/, "");
const ENTRY_PATTERN = new RegExp(
  `^(?:${unanchored(AGENT_PATTERN_PATTERN)}|${ISSUER_ENTRY_PREFIX}${unanchored(ISSUER_PATTERN)})$`,
);

export const AcceptFrom = z
  .array(z.string().regex(ENTRY_PATTERN, "must be an agent id, a namespace like agent://acme.*, or issuer:<name>"))
  .max(TEXT_LIMITS.acceptFrom)
  .meta({
    description:
      "Senders whose envelopes you accept: agent ids, namespaces like agent://acme.*, and issuer:<name> for all agents with a credential of that issuer. Every other sender's are refused with not_accepted_by_target, decisions about your own session requests excepted. Without it everyone is accepted. It holds until your next agent.register, also while you are offline.",
    examples: [["agent://bob", "agent://acme.*", "issuer:acme"]],
  });
