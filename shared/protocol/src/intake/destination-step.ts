import type { Envelope, EnvelopeKind } from "../wire/envelope.ts";
import { ERRORS } from "../wire/errors.ts";
import { type Refusal, refuse } from "./refusal.ts";

/**
 * Refuses a register or heartbeat that was signed for another relay or another connection. Else somebody who saw it
 * there could take the agent here. Passes an envelope without such members, or with members that are no strings: those
 * belong to the sender. Refusals: wrong_relay, wrong_connection. Source: docs/protocol.md#destination.
 * @param hosts names of this relay.
 * @param connectionId undefined if there is no connection, as in the self-test.
 */
export function checkDestination(
  envelope: Envelope,
  kind: EnvelopeKind,
  hosts: ReadonlySet<string>,
  connectionId: string | undefined,
): Refusal | undefined {
  if (kind !== "register" && kind !== "heartbeat") return undefined;
  const { relay, connection_id } = envelope.payload;
  if (typeof relay === "string" && isOfAnother(relay, hosts)) {
    const hint = `${ERRORS.wrong_relay.hint} This relay is ${[...hosts].join(" or ")}.`;
    return refuse("wrong_relay", envelope, { hint });
  }
  if (typeof connection_id !== "string" || connectionId === undefined || connection_id === connectionId)
    return undefined;
  return refuse("wrong_connection", envelope);
}

/**
 * Clients with listed keys may dial local names (of a machine, a network or a cluster) that no setting tells the relay.
 * Any relay may have such a name, so it does not count. A relay that has only local names refuses none.
 */
function isOfAnother(relay: string, hosts: ReadonlySet<string>): boolean {
  if (hosts.has(relay)) return false;
  const name = publicNameOf(relay);
  const ownNames = publicNamesOf(hosts);
  return name !== undefined && ownNames.size > 0 && !ownNames.has(name);
}

const publicNames = new WeakMap<ReadonlySet<string>, ReadonlySet<string>>();

/** A relay's names never change, and every heartbeat needs them. So they are computed once. */
function publicNamesOf(hosts: ReadonlySet<string>): ReadonlySet<string> {
  const known = publicNames.get(hosts);
  if (known !== undefined) return known;
  const made = new Set([...hosts].map(publicNameOf).filter((name) => name !== undefined));
  publicNames.set(hosts, made);
  return made;
}

/** Names that public DNS does not have, and private addresses. Source: RFC 6761, RFC 6762, RFC 8375, RFC 6890. */
const LOCAL = [
  /^[^.[]+$/,
  /\.(?:localhost|local|internal|intranet|private|corp|home|lan|home\.arpa|test|svc|localdomain)$/,
  /^(?=[\d.]+$)(?:0|10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./,
  /^\[(?:::1?\]|f[cd][\da-f]{2}:|fe[89ab][\da-f]:)/,
  // The same IPv4 addresses, mapped to IPv6.
  /^\[::ffff:(?:[\da-f]{1,2}|a[\da-f]{2}|7f[\da-f]{2}|a9fe|c0a8|ac1[\da-f]|64[4-7][\da-f]):/,
];

/** Characters that end a host or come before it. Else a URL's scheme would pass for a name without a dot. */
const BESIDE_HOST = /[\s/\\?#@]/;

/**
 * The name without its port if it means one host everywhere. Undefined for a local name. A text that is no host is
 * returned as it is, and matches no relay.
 */
function publicNameOf(host: string): string | undefined {
  if (BESIDE_HOST.test(host) || !URL.canParse(`wss://${host}`)) return host;
  const name = new URL(`wss://${host}`).hostname.replace(/\.$/, "");
  return LOCAL.some((form) => form.test(name)) ? undefined : name;
}
