import { CANONICAL_SIGNING_ORDER } from "@agent-relay/shared/contract/envelope.ts";
import { ANNOUNCED_LIMITS } from "@agent-relay/shared/contract/frames.ts";
import { ENVELOPE_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { SURFACES, WEBSOCKET_PATH } from "@agent-relay/shared/contract/surfaces.ts";
import type { Handlers } from "@agent-relay/shared/http/router.ts";
import { SIGNATURE_CHARACTERS } from "@agent-relay/shared/signing/algorithms.ts";
import { testVectors } from "@agent-relay/shared/signing/test-vectors.ts";
import type { GatewayKey } from "../gateway-key.ts";
import type { GatewaySettings } from "../settings.ts";

interface Deps {
  readonly gatewayKey: GatewayKey;
  readonly settings: Pick<GatewaySettings, "baseUrl" | "wsUrl" | "alternateWsPath">;
}

/** How envelopes are signed, and by which gateways. Source: protocol, section 4, "Signing manifest". */
export function discoveryRoutes({ gatewayKey, settings }: Deps): Pick<Handlers<"gateway">, "signingManifest"> {
  const { baseUrl, wsUrl, alternateWsPath } = settings;
  const constant = {
    canonical_signing_order: CANONICAL_SIGNING_ORDER,
    canonicalization: "RFC 8785 for every value; members in canonical_signing_order; absent fields left out; no sig",
    algorithms: (["ed25519", "hmac-sha256"] as const).map((alg) => ({
      alg,
      sig_characters: SIGNATURE_CHARACTERS[alg],
    })),
    encoding: "base64url",
    max_clock_skew_ms: ENVELOPE_LIMITS.maxClockSkewMs,
    websocket: { urls: [`${wsUrl}${WEBSOCKET_PATH}`, wsUrl + alternateWsPath], limits: ANNOUNCED_LIMITS },
    test_vectors: testVectors(),
    self_test: { method: "POST", url: baseUrl + SURFACES.selfTest.path },
  } as const;
  return {
    async signingManifest() {
      const listed = await gatewayKey.listed();
      const gateway_keys = listed.map(
        ({ keyId, publicKey }) => ({ key_id: keyId, alg: "ed25519", public_key: publicKey }) as const,
      );
      return { ok: true, service: "agent-relay", ...constant, gateway_keys };
    },
  };
}
