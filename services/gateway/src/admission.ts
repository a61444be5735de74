import { RelayError } from "@agent-relay/shared/contract/errors.ts";
import { HTTP_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { IDEMPOTENCY_KEY_PATTERN } from "@agent-relay/shared/contract/requests.ts";
import type { SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import { readBody } from "@agent-relay/shared/http/body.ts";
import type { SurfaceContext } from "@agent-relay/shared/http/router.ts";
import type { ApiKeyEntry } from "@agent-relay/shared/signing/key-ring.ts";
import type { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import type { z } from "zod";
import { RATE_WINDOW_SECONDS, type Usage } from "./limit.ts";
import type { PublicLimit, RateLimits } from "./rate-limits.ts";

/** A request that has a valid key, is within its rate and has the right shape. */
export interface Admitted<Body> {
  readonly surface: SurfaceId;
  readonly apiKey: ApiKeyEntry;
  /** The key itself: the idempotency claim is keyed by it. Goes nowhere else. */
  readonly apiKeyText: string;
  readonly body: Body;
  readonly idempotencyKey: string | undefined;
}

export interface AdmissionDeps {
  readonly keys: KeyStore;
  readonly limits: RateLimits;
}

/**
 * The first three gates of the gateway endpoints, in order: 401 key, 429 rate, 400 shape. The rate is used before the
 * body is read, so that broken requests count too. Source: protocol, section 9.
 * @throws RelayError as the gates say, or `unavailable`.
 */
export async function admit<Schema extends z.ZodType>(
  ctx: SurfaceContext,
  schema: Schema,
  { keys, limits }: AdmissionDeps,
): Promise<Admitted<z.output<Schema>>> {
  const surface = ctx.state.surfaceId;
  const apiKeyText = ctx.get("x-api-key");
  const apiKey = keys.ring.apiKey(apiKeyText, Date.now());
  if (apiKey === undefined) throw await refuseKey(limits, ctx.ip);

  const usage = await limits.useApiKey(surface, apiKey.id);
  ctx.set(rateLimitFields(usage));
  if (!usage.allowed) throw rateLimited(usage);

  const body = await readBody(ctx, schema);
  return { surface, apiKey, apiKeyText, body, idempotencyKey: idempotencyKeyOf(ctx) };
}

/**
 * The gate of public surfaces: so many requests a minute of one address.
 * @throws RelayError `rate_limited` or `unavailable`.
 */
export async function admitAddress(ctx: SurfaceContext, limits: RateLimits, limit: PublicLimit): Promise<void> {
  const usage = await limits.useAddress(limit, ctx.ip);
  if (!usage.allowed) throw rateLimited(usage);
}

/**
 * A key that fails is a fact without Redis too, and 178 random bits do not fall to guessing while it is away: then the
 * refusal stays what it is. The limit is asked after the look-up, so that a valid key is never refused for its address.
 */
async function refuseKey(limits: RateLimits, address: string): Promise<RelayError> {
  const usage = await limits.failKey(address).catch(() => null);
  return usage === null || usage.allowed ? new RelayError("invalid_api_key") : rateLimited(usage);
}

function rateLimited({ resetMs }: Usage): RelayError {
  return new RelayError("rate_limited", { retryAfterMs: resetMs });
}

/** Source: draft-ietf-httpapi-ratelimit-headers-10. */
function rateLimitFields({ remaining, resetMs }: Usage): Record<string, string> {
  return {
    "RateLimit-Policy": `"default";q=${HTTP_LIMITS.gatewayRequestsPerMinute};w=${RATE_WINDOW_SECONDS}`,
    RateLimit: `"default";r=${remaining};t=${Math.ceil(resetMs / 1000)}`,
  };
}

function idempotencyKeyOf(ctx: SurfaceContext): string | undefined {
  const key = ctx.headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && IDEMPOTENCY_KEY_PATTERN.test(key)) return key;
  const message = `must be 1 to ${HTTP_LIMITS.idempotencyKeyCharacters} visible ASCII characters`;
  throw new RelayError("invalid_request", { errors: [{ field: "Idempotency-Key", message }] });
}
