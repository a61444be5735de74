import { type AdminRoute, adminRoute } from "relay-runtime/admin/admin-server.ts";
import type { AuditLog } from "relay-runtime/audit-log.ts";
import { isPrincipal, principalNameOf, type RateHolder } from "relay-window/limits/principals.ts";
import { z } from "zod";
import type { PodCounters } from "../metrics.ts";
import type { PodRates } from "../throttle/rates.ts";

export interface NoisiestParts {
  readonly pod: string;
  readonly rates: Pick<PodRates, "principals" | "principalBytes">;
  readonly counters: Pick<PodCounters, "refusals" | "keyRefusals">;
  /** When the pod started, Unix ms. */
  readonly startedAt: number;
  readonly audit: AuditLog;
}

/** The counts of a key, an issuer or an agent of an issuer. */
interface Sender {
  readonly kind: string;
  readonly id: string;
  readonly envelopes: number;
  readonly bytes: number;
}

const DEFAULT_LIMIT = "10";
const MAX_LIMIT = 100;
const RULE = `must be a whole number from 1 to ${MAX_LIMIT}`;
const Query = z.strictObject({
  limit: z
    .string()
    .default(DEFAULT_LIMIT)
    .refine((text) => /^[1-9]\d{0,2}$/.test(text) && Number(text) <= MAX_LIMIT, RULE),
});

/** The top senders of this pod in this minute and the previous minute, and the refusals since its start. */
export function noisiestRoute({ pod, rates, counters, startedAt, audit }: NoisiestParts): AdminRoute {
  return adminRoute("GET", "/admin/noisiest", Query, ({ limit }) => {
    audit.write({ event: "admin_read", read: "noisiest" });
    const most = Number(limit);
    const senders = sendersOf(rates);
    const top = (by: "envelopes" | "bytes") => senders.toSorted((a, b) => b[by] - a[by]).slice(0, most);
    return {
      pod,
      span_seconds: Math.round((performance.now() - rates.principals.sentSince) / 1000),
      by_envelopes: top("envelopes"),
      by_bytes: top("bytes"),
      refusals: {
        since: new Date(startedAt).toISOString(),
        by_sender: largest(counters.keyRefusals, most).map(([labels, times]) => {
          const [kind, id] = labels.split(" ");
          return { kind, id, times };
        }),
        by_code: largest(counters.refusals, most).map(([code, times]) => ({ code, times })),
      },
    };
  });
}

function sendersOf({ principals, principalBytes }: NoisiestParts["rates"]): Sender[] {
  const bytes = new Map(principalBytes.sent());
  const envelopes = new Map(principals.sent());
  return [...new Set([...envelopes.keys(), ...bytes.keys()])].map((holder) => ({
    ...namesOf(holder),
    envelopes: envelopes.get(holder) ?? 0,
    bytes: bytes.get(holder) ?? 0,
  }));
}

function namesOf(holder: RateHolder): Pick<Sender, "kind" | "id"> {
  return isPrincipal(holder) ? principalNameOf(holder) : { kind: "agent", id: holder };
}

function largest(counts: Iterable<readonly [string, number]>, most: number): (readonly [string, number])[] {
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, most);
}
