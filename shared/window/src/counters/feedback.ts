import { categoryOf, type FeedbackRequest, sentimentOf } from "relay-protocol/contract/requests.ts";
import { surfaceLabelOf } from "relay-protocol/contract/surfaces.ts";
import { controlKeys } from "../redis/keys.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";

/**
 * Counts one feedback by its normalised labels. Its text is not passed on, only that there was one.
 * @throws ServiceError `unavailable`.
 */
export async function addFeedback(link: RedisCalls, window: ProcessWindow, feedback: FeedbackRequest): Promise<void> {
  const counts = [
    "total",
    `surface:${surfaceLabelOf(feedback.surface)}`,
    `sentiment:${sentimentOf(feedback.sentiment)}`,
    `category:${categoryOf(feedback.category)}`,
    ...(feedback.message === undefined || feedback.message === "" ? [] : ["message_provided"]),
  ];
  await window.inWindow(async ({ id, keys }) => {
    const names = [controlKeys.window, keys.whole.feedback];
    const [outcome] = await link.runByDeadline("add_feedback", names, [id, ...counts]);
    return outcome === "window" ? null : true;
  });
}
