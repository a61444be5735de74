import type Koa from "koa";
import { rateRefusal, ServiceError } from "relay-protocol/contract/refusals.ts";
import { IDEMPOTENCY_KEY_PATTERN } from "relay-protocol/contract/requests.ts";
import type { SurfaceId } from "relay-protocol/contract/surfaces.ts";
import type { ApiKeyEntry } from "relay-protocol/signing/key-ring.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import type { AuditLog } from "relay-runtime/audit-log.ts";
import { readBody } from "relay-runtime/http/input.ts";
import type { SurfaceContext } from "relay-runtime/http/router.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import type { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import { KeyRefusals } from "relay-runtime/metrics/service-metrics.ts";
import { labelsOf, principalNameOf, principalOfApiKey } from "relay-window/limits/principals.ts";
import {
  AddressLimits,
  type AddressLimitsOptions,
  hashedAddress,
  RATE_WINDOW_SECONDS,
  RateLimit,
  type Usage,
} from "relay-window/limits/rate-limit.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import type { z } from "zod";
import { contactOf, type GatewaySettings } from "../settings.ts";

/** A request with a valid API key, within its rate, with a valid body. */
export interface AuthenticatedRequest<Body> {
  readonly surface: SurfaceId;
  readonly apiKey: ApiKeyEntry;
  /** The key itself: the idempotency claim is keyed by it. It goes nowhere else. */
  readonly apiKeyText: string;
  readonly body: Body;
  readonly idempotencyKey: string | undefined;
}

export interface AuthenticationParts {
  readonly keys: KeyStore;
  readonly limits: RateLimits;
  readonly settings: Pick<GatewaySettings, "contact">;
}

/**
 * Checks a request that acts for an agent, in this order: API key (401), rate (429), body (400). The rate is used before
 * the body is read, so that invalid requests count too. Source: docs/protocol.md#http.
 * @throws ServiceError for the check that failed, or `unavailable`.
 */
export async function authenticate<Schema extends z.ZodType>(
  ctx: SurfaceContext,
  schema: Schema,
  { keys, limits, settings }: AuthenticationParts,
): Promise<AuthenticatedRequest<z.output<Schema>>> {
  const surface = ctx.state.surfaceId;
  ctx.set("RateLimit-Policy", RATE_POLICY);
  const apiKeyText = ctx.get("x-api-key");
  const apiKey = keys.ring.apiKey(apiKeyText, Date.now());
  if (apiKey === undefined) {
    if (apiKeyText === "") throw unauthorized("missing_api_key", settings.contact, otherHeaderOf(ctx));
    await countFailedKey(limits, ctx.ip);
    throw unauthorized("invalid_api_key", settings.contact);
  }
  ctx.state.apiKeyId = apiKey.id;

  const usage = await limits.useApiKey(surface, apiKey.id);
  ctx.set("RateLimit", rateLimitOf(usage));
  if (!usage.allowed) throw rateLimited("api_key_requests", HTTP_LIMITS.gatewayRequestsPerMinute, usage);

  const body = await readBody(ctx, schema);
  return { surface, apiKey, apiKeyText, body, idempotencyKey: idempotencyKeyOf(ctx) };
}

/** The header in which another service would take a key, if the request has one. Its value is not looked at. */
function otherHeaderOf({ headers }: SurfaceContext): string | undefined {
  return OTHER_HEADERS.find((name) => headers[name] !== undefined);
}

const OTHER_HEADERS = ["authorization", "api-key", "apikey", "x-api-token"];

/**
 * Failed keys are counted after the lookup, so that no valid key is refused because of its address. A request without a
 * key has tried none. Until a gateway without Redis knows a window it has no limit: nobody guesses 178 random bits in
 * that time.
 * @throws ServiceError `rate_limited`.
 */
async function countFailedKey(limits: RateLimits, address: string): Promise<void> {
  const usage = await limits.countFailedKey(address).catch(() => null);
  if (usage !== null && !usage.allowed) throw rateLimited("failed_keys", HTTP_LIMITS.failedKeysPerMinute, usage);
}

function rateLimited(limit: "api_key_requests" | "failed_keys", most: number, { resetMs }: Usage): ServiceError {
  return new ServiceError("rate_limited", rateRefusal(limit, most, resetMs));
}

/** Source: draft-ietf-httpapi-ratelimit-headers-10. */
const RATE_POLICY = `"default";q=${HTTP_LIMITS.gatewayRequestsPerMinute};w=${RATE_WINDOW_SECONDS}`;
const rateLimitOf = ({ remaining, resetMs }: Usage) => `"default";r=${remaining};t=${Math.ceil(resetMs / 1000)}`;

function idempotencyKeyOf(ctx: SurfaceContext): string | undefined {
  const key = ctx.headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && IDEMPOTENCY_KEY_PATTERN.test(key)) return key;
  const message = `must be 1 to ${HTTP_LIMITS.idempotencyKeyCharacters} visible ASCII characters`;
  throw new ServiceError("invalid_request", { errors: [{ field: "Idempotency-Key", message }] });
}

/** The rate limits of the gateway, counted in Redis: no answer is never taken for "limit reached". Source: docs/protocol.md#http. */
export class RateLimits {
  /** The limits of the public surfaces. */
  readonly addresses: AddressLimits;
  readonly #window: ProcessWindow;
  readonly #apiKeys: RateLimit;
  readonly #failedKeys: RateLimit;
  readonly #limitReached: (limit: LimitName) => void;

  constructor(options: AddressLimitsOptions) {
    const { link, window, partitions, limitReached } = options;
    this.addresses = new AddressLimits(options);
    this.#window = window;
    this.#limitReached = limitReached;
    const limit = { link, partitions };
    this.#apiKeys = new RateLimit({ ...limit, name: "api-key", most: HTTP_LIMITS.gatewayRequestsPerMinute });
    this.#failedKeys = new RateLimit({ ...limit, name: "failed-key", most: HTTP_LIMITS.failedKeysPerMinute });
  }

  /** @param apiKeyId the key's name in the keys file. @throws ServiceError `unavailable` while no part of Redis answers. */
  async useApiKey(surface: SurfaceId, apiKeyId: string): Promise<Usage> {
    return this.#told("api_key_requests", await this.#apiKeys.use(`${surface}:${apiKeyId}`));
  }

  /** @throws ServiceError `unavailable` before the salt is known. */
  async countFailedKey(address: string): Promise<Usage> {
    return this.#told("failed_keys", await this.#failedKeys.useAnyway(await hashedAddress(this.#window, address)));
  }

  #told(name: LimitName, usage: Usage): Usage {
    if (!usage.allowed) this.#limitReached(name);
    return usage;
  }
}

/** The refusals that only the relay's operator can help with: their hint says how to reach one. */
type UnauthorizedCode = "missing_api_key" | "invalid_api_key" | "api_key_not_allowed_for_sender";

/** @param contact RELAY_CONTACT. @param misplaced the header that the key was probably sent in. */
export function unauthorized(code: UnauthorizedCode, contact: string | undefined, misplaced?: string): ServiceError {
  const place = misplaced === undefined ? "" : `An API key goes into x-api-key, not into ${misplaced}. `;
  return new ServiceError(code, { hint: `${place}${ERRORS[code].hint} ${contactOf(contact).note}` });
}

/**
 * Counts the requests that were refused although their API key is valid, by key, and writes them to the audit log.
 * Faults of the relay are left out. Also counts the lines that the audit log lost.
 */
export function observeKeys(metrics: ServiceMetrics, keys: KeyStore, audit: AuditLog, app: Koa): void {
  metrics.gauge("relay_keys_file_valid", () => [["", keys.isBehind ? 0 : 1]]);
  const refusals = new KeyRefusals();
  metrics.counterOf("relay_key_refusals_total", () => refusals);
  metrics.counterOf("relay_audit_lines_lost_total", () => [["", audit.linesLost]]);
  app.on("answered", ({ state }: Koa.Context, code: ErrorCode | null) => {
    if (code === null || state.apiKeyId === undefined || (ERRORS[code].httpStatus ?? 0) >= 500) return;
    const principal = principalOfApiKey(state.apiKeyId);
    refusals.add(labelsOf(principal));
    audit.refused(principalNameOf(principal), code);
  });
}
