import { type IssuerRecord, isIssuerRecord } from "../../credentials/issuer-record.ts";
import { thumbprintOf } from "../../credentials/public-jwk.ts";
import { Failure } from "../failure.ts";
import { isLoopback } from "../http-address.ts";
import type { RelayHttp } from "../relay-http.ts";

const MANIFEST = "/.well-known/signing-manifest.json";

/**
 * The issuers of a relay that a new agent trusts: those that are named; of a relay on this machine, where nobody else can stand
 * between, all that it admits. Source: connector/README.md, "A start".
 * @throws {Failure} `not_found` for a name that the relay does not admit, or as RelayHttp does.
 */
export async function relayIssuers(http: RelayHttp, names: readonly string[]): Promise<readonly IssuerRecord[]> {
  if (names.length === 0 && !isOnThisMachine(http)) return [];
  const { issuers } = await http.get(MANIFEST);
  const admitted = (Array.isArray(issuers) ? issuers : []).filter(isIssuerRecord);
  if (names.length === 0) return admitted;
  return names.map((name) => {
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

export function isOnThisMachine({ baseUrl }: RelayHttp): boolean {
  return isLoopback(new URL(baseUrl).hostname.replace(/^\[|\]$/g, ""));
}

/** The keys of an issuer, by RFC 7638 thumbprint, as its credentials name them (`kid`). */
export async function thumbprintsOf({ keys }: IssuerRecord): Promise<string[]> {
  return await Promise.all(keys.map(({ public_key }) => thumbprintOf(public_key, "Ed25519")));
}
