import type { ReceivedDelivery } from "./delivery-judge.ts";
import { RelayError } from "./errors.ts";
import { ignoreRejection } from "./ignore-rejection.ts";
import type { Accepted, Delivery, Envelope, ReplyOptions, SendOptions } from "./types.ts";

/** How a reply belongs to what it answers. Source: docs/protocol.md#conversations. */

export const REPLY_TYPE = "message.reply";

/** What a reply goes out by. */
export type ReplySend = (to: string, payload: object, options: SendOptions) => Promise<Accepted>;

/** A reply is not replied to: two agents that both reply would go on forever. Sessions are answered by decisions. */
export function isAnswerable(type: string): boolean {
  return type.startsWith("message.") && type !== REPLY_TYPE;
}

/** With `reply`, which copies of the data (JSON, postMessage) leave out. */
export function withReply(received: ReceivedDelivery, send: ReplySend): Delivery {
  const value = (payload: object, options: ReplyOptions = {}) =>
    ignoreRejection(replyTo(received, payload, options, send));
  return Object.defineProperty({ ...received }, "reply", { value }) as Delivery;
}

async function replyTo(received: ReceivedDelivery, payload: object, options: ReplyOptions, send: ReplySend) {
  const { envelope, from, type, sealed } = received;
  if (!isAnswerable(type)) throw new RelayError("not_answerable", { envelopeId: envelope.id });
  const seal = sealed === true || options.seal;
  return await send(from, payload, { ...options, seal, type: REPLY_TYPE, taskId: taskOfReplyTo(envelope) });
}

function taskOfReplyTo({ id, task_id }: Envelope): string {
  return task_id ?? id;
}
