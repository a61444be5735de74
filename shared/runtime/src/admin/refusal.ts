import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { problemOf } from "../http/problem.ts";

/** What the admin listener alone refuses with: no client of the relay ever sees these codes. */
const ADMIN_ERRORS = {
  unauthorized: {
    status: 401,
    title: "The request has no admin key, or another one.",
    hint: "Send Authorization: Bearer, and the line that RELAY_ADMIN_KEY_FILE of this pod holds.",
  },
  not_in_force: {
    status: 404,
    title: "No key or issuer of this id is in force.",
    hint: "npm run keys -- list shows signing keys and issuers of the keys file; an API key has no connections.",
  },
  not_connected: {
    status: 404,
    title: "No pod has a connection of this agent.",
    hint: "Nothing is to be done: it is not online, or has just gone.",
  },
} as const;
export type AdminErrorCode = keyof typeof ADMIN_ERRORS;

/** A refusal of the admin listener. */
export class AdminError extends Error {
  readonly code: AdminErrorCode;

  constructor(code: AdminErrorCode) {
    super(ADMIN_ERRORS[code].title);
    this.name = "AdminError";
    this.code = code;
  }
}

/** A refusal as HTTP sends it. Source: RFC 9457; docs/operations.md#admin. */
export interface AdminProblem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

/** Of anything thrown; whoever asks learns nothing about an unexpected error. */
export function adminProblemOf(error: unknown): AdminProblem {
  if (!(error instanceof AdminError)) {
    return problemOf(error instanceof ServiceError ? error : new ServiceError("internal_error"));
  }
  const { code } = error;
  const { status, title, hint } = ADMIN_ERRORS[code];
  return {
    status,
    // RFC 6750, section 3.
    headers: {
      "Content-Type": "application/problem+json",
      ...(status === 401 && { "WWW-Authenticate": 'Bearer realm="agent-relay admin"' }),
    },
    body: {
      type: `urn:agent-relay:problem:${code}`,
      title,
      status,
      detail: title,
      ok: false,
      code,
      hint,
      retry: "fix",
    },
  };
}
