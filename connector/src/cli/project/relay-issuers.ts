import { ANY_AGENT } from "../../credentials/contract.ts";
import { type IssuerRecord, isIssuerRecord } from "../../credentials/issuer-record.ts";
import { Failure } from "../failure.ts";
import { isLoopback } from "../http-address.ts";
import type { RelayHttp } from "../relay-http.ts";

const MANIFEST = "/.well-known/signing-manifest.json";
/** More than a rotation needs: all of them are printed to be compared. */
const MAX_KEYS = 8;

/**
 * The issuers of a relay that a new agent trusts: those that are named; of a relay on this machine, where nobody else can stand
 * between, all that it admits.
 * @throws {Failure} `not_found` for a name that the relay does not admit, or as RelayHttp does.
 */
export async function relayIssuers(http: RelayHttp, names: readonly string[]): Promise<readonly IssuerRecord[]> {
  if (names.length === 0 && !isOnThisMachine(http)) return [];
  const { issuers } = await http.get(MANIFEST);
  const records = (Array.isArray(issuers) ? issuers : []).filter(isIssuerRecord);
  const admitted = records.filter(({ issuer }, n) => records.findIndex((other) => other.issuer === issuer) === n);
  if (admitted.length !== records.length || admitted.some(({ keys }) => keys.length > MAX_KEYS))
    throw notOfARelay(http);
  if (names.length === 0) return admitted.map(namedAgentsOf);
  return [...new Set(names)].map((name) => {
    const record = admitted.find(({ issuer }) => issuer === name);
    if (record !== undefined) return record;
    throw new Failure(
      "not_found",
      `The relay at ${http.baseUrl} admits no issuer of this name.`,
      admitted.length === 0 ? "It admits none." : `It admits ${admitted.map(({ issuer }) => issuer).join(", ")}.`,
      { retry: "fix" },
    );
  });
}

/** Without `*`: a recipient that pins it accepts no reply of an agent that the relay lists. Only where it stands alone it stays. */
function namedAgentsOf(record: IssuerRecord): IssuerRecord {
  const agents = record.agents.filter((pattern) => pattern !== ANY_AGENT);
  return agents.length === 0 ? record : { ...record, agents };
}

function notOfARelay({ baseUrl }: RelayHttp): Failure {
  const why = `The signing manifest of ${baseUrl} has an issuer twice, or one with more than ${MAX_KEYS} keys.`;
  return new Failure("not_found", why, "Name the relay with --url.", { retry: "fix" });
}

/** Over HTTP and over the websocket. */
export function isOnThisMachine({ baseUrl, websocketUrl }: RelayHttp): boolean {
  return [baseUrl, websocketUrl].every((url) => isLoopback(new URL(url).hostname.replace(/^\[|\]$/g, "")));
}

/** What an issuer is trusted with, as its own record has it: to be compared with that. */
export function shownIssuer({ issuer, keys, agents, revoked = [] }: IssuerRecord): string {
  const [ofKeys, ofAgents] = [keys.map(({ public_key }) => public_key), agents].map((all) => all.join(", "));
  return `It trusts the relay's issuer ${issuer}, with the public key ${ofKeys}, for ${ofAgents}; revocations: ${revoked.length}.`;
}
