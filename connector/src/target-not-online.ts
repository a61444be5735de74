import { RelayError } from "./errors.ts";

const NOT_SEEN =
  "The relay has not seen the target since its process window began, with its last start or later. If that is long ago, check the id. Nobody received it, and the relay keeps nothing.";

/** Nobody received it. @param status the target's, as the relay tells it: an id that it has not seen may be misspelt. */
export function targetNotOnline(status: unknown, envelopeId?: string): RelayError {
  const message = status === "not_seen" ? NOT_SEEN : undefined;
  return new RelayError("target_not_online", { message, envelopeId });
}
