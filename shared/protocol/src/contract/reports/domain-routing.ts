import { z } from "zod";
import { Privacy } from "./common.ts";

/** GET /api/ops/domain-routing: the host of this request, and the hosts that are expected. */

const Host = z.string().nullable().meta({ description: "Host with port; null when absent or not a valid host name." });
const Scheme = z.enum(["http", "https"]);

const DOMAIN_HINTS = [
  "observed_host_missing",
  "stale_custom_domain",
  "base_url_host_not_expected",
  "ws_url_host_not_expected",
  "scheme_differs_from_base_url",
  "forwarded_headers_not_trusted",
] as const;
export type DomainHint = (typeof DOMAIN_HINTS)[number];

export const DomainRouting = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  observed: z
    .strictObject({
      host: Host,
      scheme: Scheme,
      proxy_host: Host,
      proxy_scheme: Scheme.nullable(),
      proxy_origin: z
        .string()
        .nullable()
        .meta({ description: "The origin that the client requested, by the headers of trusted proxies." }),
      public_origin: z
        .string()
        .nullable()
        .meta({ description: "The proxy origin, or else the origin of the Host header." }),
      forwarded_headers: z.enum(["absent", "not_trusted", "trusted"]),
    })
    .meta({ description: "Of this request only; nothing of it is kept." }),
  expected: z.strictObject({
    public_hosts: z.array(z.string()),
    source: z.enum(["RELAY_PUBLIC_HOSTS", "RELAY_BASE_URL"]),
    base_url: z.string(),
    ws_url: z.string().meta({ description: "Without a path: append /ws, or the alternate websocket path." }),
    trusted_proxy_hops: z.int(),
  }),
  host_matches_expected: z.boolean(),
  stale_custom_domain_hints: z.array(z.strictObject({ code: z.enum(DOMAIN_HINTS), hint: z.string() })),
  next_action: z.string(),
  privacy: Privacy,
});
export type DomainRouting = z.infer<typeof DomainRouting>;
