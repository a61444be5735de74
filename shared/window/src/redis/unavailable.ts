import { type Place, partRefusal, ServiceError } from "relay-protocol/contract/refusals.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";

/** The refusal for whatever needs Redis while it does not answer. @param cause what Redis or the client said. */
export function unavailable(cause?: unknown): ServiceError {
  const error = new ServiceError("unavailable", { retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
  return cause === undefined ? error : Object.assign(error, { cause });
}

/** The same of a part of Redis that does not answer, while others do. */
export class OutOfReachError extends ServiceError {
  readonly place: Place;

  constructor(place: Place, cause?: unknown) {
    super("unavailable", { ...partRefusal(place), retryAfterMs: HTTP_LIMITS.unavailableRetryAfterMs });
    this.place = place;
    if (cause !== undefined) this.cause = cause;
  }
}

/** Which part a failed call found out of reach; undefined where that is all of Redis, or another fault. */
export function placeOutOfReach(failure: unknown): Place | undefined {
  return failure instanceof OutOfReachError ? failure.place : undefined;
}

/** What an outcome says of the part that a failed call found out of reach. */
export function placeIn(failure: unknown): { readonly place?: Place } {
  const place = placeOutOfReach(failure);
  return place === undefined ? {} : { place };
}

export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unavailable";
}
