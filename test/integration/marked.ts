import { randomBytes } from "node:crypto";

/** What clients send with a mark of its own in each place, so that it is found wherever it comes to lie. */

/** In letters that no normalising of labels changes. */
const mark = (name: string) => `mark${name}${randomBytes(6).toString("hex")}`;
/** What an envelope says: it passes through Redis on its way to the target, and stays nowhere. */
export const SAID = {
  type: `message.mark_${randomBytes(6).toString("hex")}`,
  payload: mark("payload"),
  message: mark("message"),
  task_id: mark("task"),
  purpose: mark("purpose"),
  intro: mark("intro"),
  scope: mark("scope"),
  expected_frequency: mark("frequency"),
  reason: mark("reason"),
};
/** What no other process than the one that was told ever learns; of what is sealed that is the recipient's. */
export const TOLD = {
  sealed: mark("sealed"),
  label: mark("label"),
  capability: mark("capability"),
  feedback: mark("feedback"),
  feedbackCategory: mark("category"),
  feedbackSurface: mark("surface"),
  userAgent: mark("agent"),
  address: "203.0.113.77",
  idempotencyKey: mark("idempotency"),
  wrongApiKey: `rk_${mark("key")}`,
  query: mark("query"),
  unknownField: mark("field"),
  keysFileSecret: mark("secret"),
};
