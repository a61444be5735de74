import { AGENT_SCHEME } from "./agent-id.ts";
import type { ConnectorOptions, Trust } from "./options.ts";

/** Whom to believe; nobody where the option names nobody. */
export type Trusted = { readonly [Name in keyof Trust]-?: NonNullable<Trust[Name]> };

/** The option in its one form: a record of keys by agent is `keys`. */
export function trustedBy(option: ConnectorOptions["trust"] = {}): Trusted {
  const isKeys = Object.keys(option).some((name) => name.startsWith(AGENT_SCHEME));
  const { keys = {}, issuers = [], gateways = [] } = (isKeys ? { keys: option } : option) as Trust;
  return { keys, issuers, gateways };
}
