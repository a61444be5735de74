import { sessionIdOf } from "relay-window/acceptance/acceptance.ts";
import { canonical } from "../../../test/support/agent.ts";
import type { Envelope } from "../../src/types.ts";

/** The id that the relay gives to the session of a request. */
export function sessionOf({ sig, ...request }: Envelope): string {
  return sessionIdOf(`${canonical(request).slice(0, -1)},"sig":"${sig}"}`, 0);
}
