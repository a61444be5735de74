import { CANONICAL_SIGNING_ORDER } from "@agent-relay/shared/contract/envelope.ts";
import { RelayError } from "@agent-relay/shared/contract/errors.ts";
import { PRIVACY } from "@agent-relay/shared/contract/reports/common.ts";
import { readBodyText } from "@agent-relay/shared/http/body.ts";
import type { Handlers, SurfaceContext } from "@agent-relay/shared/http/router.ts";
import { isRefusal, type Refusal } from "@agent-relay/shared/intake/refusal.ts";
import { conclude, inspect, type VerifiedEnvelope } from "@agent-relay/shared/intake/steps.ts";
import { verify } from "@agent-relay/shared/signing/algorithms.ts";
import type { KeyRing } from "@agent-relay/shared/signing/key-ring.ts";
import type { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import type { Counters } from "@agent-relay/shared/window/counters.ts";
import { admitAddress } from "../admission.ts";
import type { RateLimits } from "../rate-limits.ts";

interface Deps {
  readonly keys: KeyStore;
  readonly counters: Counters;
  readonly limits: RateLimits;
}

const STEPS = [
  "Fill in request_template; ts is now in epoch milliseconds.",
  "Serialise the fields in canonical_signing_order by RFC 8785, without sig and without absent fields.",
  "Sign those UTF-8 bytes with your key and put the base64url signature, without padding, into sig.",
  "POST the envelope to this path: stage pass means that the websocket would take it too.",
];

const REQUEST_TEMPLATE = {
  id: "env-1",
  type: "agent.register",
  from: "agent://your-agent",
  payload: {},
  ts: 0,
  key_id: "your-key-id",
  sig: "base64url: 86 characters for ed25519, 43 for hmac-sha256",
};

/** The intake steps of the websocket up to, and without, acceptance. Source: protocol, section 4, "Self-test". */
export function selfTestRoutes({
  keys,
  counters,
  limits,
}: Deps): Pick<Handlers<"gateway">, "selfTestGuide" | "selfTest"> {
  return {
    selfTestGuide: () => ({
      ok: true,
      stage: "guide",
      canonical_signing_order: [...CANONICAL_SIGNING_ORDER],
      request_template: REQUEST_TEMPLATE,
      steps: STEPS,
      privacy: PRIVACY,
      next_proof_step: "Connect, send agent.register and look at /api/onboarding/check-online.",
    }),

    async selfTest(ctx) {
      await admitUnlessDown(ctx, limits);
      const result = examine(await readBodyText(ctx), keys.ring);
      if (isRefusal(result)) throw refused(result);
      counters.count("self_test_passed");
      return {
        ok: true,
        stage: "pass",
        type: result.envelope.type,
        server_time: Date.now(),
        next_step: "Send this very envelope, or a new one, over the websocket.",
      };
    },
  };
}

/** Redis holds nothing of a self-test but its limit: without Redis an agent can still find out whether it signs well. */
async function admitUnlessDown(ctx: SurfaceContext, limits: RateLimits): Promise<void> {
  try {
    await admitAddress(ctx, limits, "self_test");
  } catch (error) {
    if (!(error instanceof RelayError) || error.code !== "unavailable") throw error;
  }
}

function examine(text: string, ring: KeyRing): Refusal | VerifiedEnvelope {
  const result = inspect(text, ring, Date.now());
  if (isRefusal(result)) return result;
  return conclude(result, verify(result.entry.key, result.canonical, result.envelope.sig));
}

function refused({ code, detail, errors }: Refusal): RelayError {
  return new RelayError(code, { ...(detail !== undefined && { detail }), ...(errors !== undefined && { errors }) });
}
