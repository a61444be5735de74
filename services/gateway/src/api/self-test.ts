import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import {
  type BroughtKeys,
  invalidCredential,
  isIssued,
  type KnownKeys,
  keyOfShown,
} from "relay-protocol/intake/credential-step.ts";
import { isRefusal, type Refusal } from "relay-protocol/intake/refusal.ts";
import {
  checkAfterSignature,
  checkBeforeSignature,
  readShape,
  type VerifiedEnvelope,
} from "relay-protocol/intake/steps.ts";
import { verify } from "relay-protocol/signing/algorithms.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import { CANONICAL_SIGNING_ORDER } from "relay-protocol/wire/envelope.ts";
import { readBodyText } from "relay-runtime/http/input.ts";
import type { Handlers } from "relay-runtime/http/router.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { Counters } from "relay-window/counters/counters.ts";
import type { RateLimits } from "./authentication.ts";

interface Parts {
  readonly keys: KeyStore;
  readonly counters: Counters;
  readonly limits: RateLimits;
  /** The names of this relay, which a register may be meant for. */
  readonly hosts: ReadonlySet<string>;
  /** The name that documents show. */
  readonly relay: string;
}

const STEPS = [
  "Fill in request_template; ts is now in epoch milliseconds.",
  "Serialize the fields in canonical_signing_order as RFC 8785 says, without sig and without absent fields.",
  "Sign those UTF-8 bytes with your key and put the base64url signature, without padding, into sig.",
  "POST the envelope to this path: stage pass means that the websocket would accept it too, once from is registered there; a session that it names is not looked up, and connection_id is not compared.",
  "An envelope that is no register, under a key with a credential: add ?credential=<token>. A connection knows it from the register.",
  "After bad_signature POST it to this path with ?explain=1, and compare canonical with the text that you signed.",
];

/** @param relay the name that a register says it is meant for. */
const requestTemplate = (relay: string) => ({
  id: "env-1",
  type: "agent.register",
  from: "agent://your-agent",
  payload: {
    credential: "that of your key; leave it out where the relay lists the key",
    relay,
    connection_id: "that of hello",
  },
  ts: 0,
  key_id: "your-key-id",
  sig: "base64url: 86 characters for ed25519, 43 for hmac-sha256",
});

/** The checks of the websocket, without acceptance. Source: docs/protocol.md#self-test. */
export function selfTestEndpoints({
  keys,
  counters,
  limits,
  hosts,
  relay,
}: Parts): Pick<Handlers<"gateway">, "selfTestGuide" | "selfTest"> {
  return {
    selfTestGuide: () => ({
      ok: true,
      stage: "guide",
      canonical_signing_order: [...CANONICAL_SIGNING_ORDER],
      request_template: requestTemplate(relay),
      steps: STEPS,
      privacy: PRIVACY,
      next_proof_step: `Connect, send agent.register, then read ${SURFACES.checkOnline.path}{?agent_id} (a template, RFC 6570).`,
    }),

    async selfTest(ctx) {
      await useLimit(limits, ctx.ip);
      const text = await readBodyText(ctx);
      const { explain, credential } = ctx.state.query;
      const explained = explain === "1" ? explanation(text) : {};
      const result = examine(text, { ring: keys.ring, hosts }, credential);
      if (isRefusal(result)) throw refused(result, explained);
      counters.count("self_test_passed");
      return {
        ok: true,
        stage: "pass",
        type: result.envelope.type,
        server_time: Date.now(),
        ...explained,
        next_step: "Send this envelope, or a new one, over the websocket.",
      };
    },
  };
}

/** Only the limit needs Redis: agents can test their signatures without it, before a window is known without a limit. */
async function useLimit(limits: RateLimits, address: string): Promise<void> {
  try {
    await limits.addresses.use("self_test", address);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== "unavailable") throw error;
  }
}

/** @param shown a credential, known as if its register had been accepted. */
function examine(text: string, keys: KnownKeys, shown: string | undefined): Refusal | VerifiedEnvelope {
  const now = Date.now();
  const credentials = shown === undefined ? undefined : broughtBy(shown, keys, now);
  const result = checkBeforeSignature(text, keys, now, { credentials });
  if (isRefusal(result)) return result;
  const { credential } = result;
  if (credential !== undefined && !isIssued(credential)) return invalidCredential("signature", result.envelope);
  return checkAfterSignature(result, verify(result.entry.key, result.canonical, result.envelope.sig));
}

/** Judged when an envelope asks for its key, so never before size and clock. Source: docs/protocol.md#credentials. */
function broughtBy(shown: string, keys: KnownKeys, now: number): BroughtKeys {
  return {
    keyOf(keyId) {
      const key = keyOfShown(shown, keys, now);
      return isRefusal(key) || key.keyId === keyId ? key : undefined;
    },
  };
}

/** The canonical text of an envelope with a valid shape, whatever its signature. Nothing for any other text. */
function explanation(text: string): { readonly canonical?: string } {
  const shaped = readShape(text);
  return isRefusal(shaped) ? {} : { canonical: canonicalText(shaped.envelope) };
}

function refused({ code, detail, hint, errors, canonicalSha256 }: Refusal, explained: object): ServiceError {
  const digest = canonicalSha256 === undefined ? {} : { canonical_sha256: canonicalSha256 };
  return new ServiceError(code, {
    ...(detail !== undefined && { detail }),
    ...(hint !== undefined && { hint }),
    ...(errors !== undefined && { errors }),
    members: { ...digest, ...explained },
  });
}
