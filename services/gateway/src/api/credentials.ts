import { AgentName } from "relay-protocol/contract/envelope.ts";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { readCredential } from "relay-protocol/signing/credentials.ts";
import { agentNamed } from "relay-protocol/wire/ids.ts";
import { validate } from "relay-runtime/http/input.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import { readCredentials } from "relay-window/public-keys/credential-records.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { z } from "zod";
import type { RateLimits } from "./authentication.ts";

interface Parts {
  readonly link: RedisCalls;
  readonly keys: KeyStore;
  readonly limits: RateLimits;
  readonly window: ProcessWindow;
}

/** Credentials of agents, for clients that check their signatures. Source: docs/protocol.md#credentials. */
export function credentialEndpoints({
  link,
  keys,
  limits,
  window,
}: Parts): Pick<Handlers<"gateway">, "readCredential"> {
  return {
    async readCredential(ctx) {
      await limits.addresses.use("credential_lookups", ctx.ip);
      const agent = agentNamed(validate(z.object({ name: AgentName }), ctx.params).name);
      const { key_id } = ctx.state.query;
      const { issuers } = keys.ring;
      for (const { keyId, token } of await readCredentials(link, window, agent)) {
        const credential = key_id === undefined || key_id === keyId ? readCredential(token) : undefined;
        // A credential that was accepted once may have expired, or been revoked.
        if (credential === undefined || issuers.problemOf(credential, Date.now()) !== undefined) continue;
        return {
          ok: true,
          agent_id: agent,
          key_id: keyId,
          credential: token,
          issuer: credential.issuer,
          expires_at_iso: new Date(issuers.endOf(credential)).toISOString(),
        };
      }
      throw new ServiceError("unknown_agent");
    },
  };
}
