import { RelayError } from "./errors.ts";

const NEVER_SEEN =
  "The relay has never seen the target, as far back as it knows: check its id. Nobody received it, and the relay keeps nothing.";

/** Nobody received it. @param status the target's, as the relay tells it: an id that it never saw may be misspelt. */
export function targetNotOnline(status: unknown, envelopeId?: string): RelayError {
  const message = status === "not_seen" ? NEVER_SEEN : undefined;
  return new RelayError("target_not_online", { message, envelopeId });
}
