import type { Contact } from "relay-protocol/contract/responses.ts";

/** What feedback can and cannot do; it stands wherever feedback is offered. Source: docs/reports.md#feedback. */
export const FEEDBACK_REACH =
  "Feedback is counted by category, and its text is dropped: nobody reads it, so it reaches no person.";

/** How a caller reaches a person. @param address RELAY_CONTACT. */
export function contactOf(address: string | undefined): Contact {
  if (address === undefined) return { address: null, note: "The operator of this relay named no contact." };
  return { address, note: `The operator of this relay can be reached at ${address}.` };
}
