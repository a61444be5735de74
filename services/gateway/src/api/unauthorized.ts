import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { contactOf } from "./contact.ts";

/** The refusals that only the relay's operator can help with: their hint says how to reach one. */
export type UnauthorizedCode = "missing_api_key" | "invalid_api_key" | "api_key_not_allowed_for_sender";

/** @param contact RELAY_CONTACT. @param misplaced the header that the key was probably sent in. */
export function unauthorized(code: UnauthorizedCode, contact: string | undefined, misplaced?: string): ServiceError {
  const place = misplaced === undefined ? "" : `An API key goes into x-api-key, not into ${misplaced}. `;
  return new ServiceError(code, { hint: `${place}${ERRORS[code].hint} ${contactOf(contact).note}` });
}
