import type { Envelope, EnvelopeKind } from "../contract/envelope.ts";
import { ERRORS } from "../contract/errors.ts";
import { type Refusal, refuse } from "./refusal.ts";

/**
 * Refuses a register or heartbeat that was signed for another relay, or for another connection: whoever saw it there would have the
 * agent here. What says neither passes. Refusals: wrong_relay, wrong_connection. Source: docs/protocol.md#destination.
 * @param hosts the names of this relay. @param connectionId undefined where there is no connection, and nothing is taken.
 */
export function checkDestination(
  envelope: Envelope,
  kind: EnvelopeKind,
  hosts: ReadonlySet<string>,
  connectionId: string | undefined,
): Refusal | undefined {
  if (kind !== "register" && kind !== "heartbeat") return undefined;
  const { relay, connection_id } = envelope.payload;
  if (relay !== undefined && isOfAnother(relay, hosts)) {
    const hint = `${ERRORS.wrong_relay.hint} This relay is ${[...hosts].join(" or ")}.`;
    return refuse("wrong_relay", envelope, { hint });
  }
  if (connection_id === undefined || connectionId === undefined || connection_id === connectionId) return undefined;
  return refuse("wrong_connection", envelope);
}

/**
 * A listed key has always been used under names that no setting tells the relay: those of a machine, a network or a cluster. Any
 * relay may have one, so it says nothing; nor does any name to a relay that was given no other.
 */
function isOfAnother(relay: unknown, hosts: ReadonlySet<string>): boolean {
  if (typeof relay !== "string") return true;
  if (hosts.has(relay)) return false;
  const name = publicNameOf(relay);
  const ownNames = [...hosts].map(publicNameOf).filter((own) => own !== undefined);
  return name !== undefined && ownNames.length > 0 && !ownNames.includes(name);
}

/** Names that public DNS does not have, and private addresses. Source: RFC 6761, RFC 6762, RFC 8375, RFC 6890. */
const LOCAL = [
  /^[^.[]+$/,
  /\.(?:localhost|local|internal|intranet|private|corp|home|lan|home\.arpa|test|svc)$/,
  /^(?=[\d.]+$)(?:0|10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\./,
  /^\[(?:::1?\]|f[cd][\da-f]{2}:|fe[89ab][\da-f]:)/,
];

/** The name without its port, where it means one host everywhere; what is no host at all is nobody's. */
function publicNameOf(host: string): string | undefined {
  if (!URL.canParse(`wss://${host}`)) return host;
  const name = new URL(`wss://${host}`).hostname.replace(/\.$/, "");
  return LOCAL.some((form) => form.test(name)) ? undefined : name;
}
