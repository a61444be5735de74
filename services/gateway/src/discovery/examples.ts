import type { SimpleSendRequest, SimpleSessionRequest } from "relay-protocol/contract/requests.ts";
import { PENDING } from "relay-protocol/contract/session.ts";
import type { SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { credentialTestVector } from "relay-protocol/signing/test-vectors.ts";
import { parseJson } from "relay-protocol/wire/json.ts";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { FirstAnswer } from "relay-window/acceptance/acceptance.ts";
import { presenceOf } from "relay-window/presence/presence.ts";
import type { Session } from "relay-window/sessions/look-ups.ts";
import { acceptedEnvelope, acceptedSession } from "../api/accepted-requests.ts";
import { contactOf, FEEDBACK_REACH } from "../api/contact.ts";
import { presenceOfAgent } from "../api/presence-answer.ts";
import { sessionRecord } from "../api/session-answer.ts";
import {
  ALICE,
  BOB,
  EXAMPLE_ENVELOPE_ID,
  EXAMPLE_SESSION_ID,
  EXAMPLE_TIME,
  exampleEnvelope,
} from "./example-envelopes.ts";
import recorded from "./recorded-answers.json" with { type: "json" };
import type { DiscoverySettings } from "./relay-description.ts";

/** How recorded answers name the relay. */
export const RECORDED = { baseUrl: "https://relay.example", wsUrl: "wss://relay.example" } as const;

export const SEND_REQUEST: SimpleSendRequest = { from: ALICE, to: BOB, message: "Hello, Bob." };
export const SESSION_REQUEST: SimpleSessionRequest = {
  from: ALICE,
  to: BOB,
  purpose: "Agree on terms for a translation.",
  intro: "I translate from Danish.",
  scope: "Ten pages, this week.",
  expected_frequency: "once",
  ttl_minutes: 60,
};
const FEEDBACK_REQUEST = {
  surface: "checkOnline",
  sentiment: "blocked",
  category: "connector_not_seen",
  message: "Registered, but check-online says not_seen.",
};

/** What an example needs to run as it is printed, or an answer to be the one that is shown. */
export const NEEDS = {
  api_key: `The header x-api-key, with an API key that is allowed for ${ALICE}.`,
  target_online: `${BOB} is online.`,
  fresh_signature:
    "ts is old and the key is the published one: replace ts by the current time, key_id and sig by those of a key that the relay knows.",
  known_session: "In place of session_id one that the relay knows, of a 202 of requestSession.",
  known_credential: "In place of name that of an agent that registered with a credential.",
  package: "A relay that hands out packages; in place of file one that /connectors lists.",
} as const;
export type Need = keyof typeof NEEDS;

/** They stand in examples only: no relay knows them, and links that contain them lead nowhere. */
export const MADE_UP_IDS = [EXAMPLE_SESSION_ID, EXAMPLE_ENVELOPE_ID];

/** What an example carries that does not run as it stands. */
export const needs = (...names: readonly Need[]) => ({ "x-needs": names });

/** Examples of one body, as OpenAPI has them: name → what it needs, and its value. */
export type Examples = Readonly<Record<string, { readonly "x-needs"?: readonly Need[]; readonly value: object }>>;

/** One request body for each operation that takes one. */
export const REQUEST_EXAMPLES: Partial<Record<SurfaceId, Examples>> = {
  sendMessage: { message: { ...needs("api_key"), value: SEND_REQUEST } },
  requestSession: { session: { ...needs("api_key"), value: SESSION_REQUEST } },
  submitFeedback: { blocked: { value: FEEDBACK_REQUEST } },
  selfTest: { register: { ...needs("fresh_signature"), value: exampleEnvelope("agent.register") } },
};

const FIRST: FirstAnswer = {
  envelopeId: EXAMPLE_ENVELOPE_ID,
  sessionId: EXAMPLE_SESSION_ID,
  delivery: "online",
  acceptedAt: EXAMPLE_TIME,
};
const HOUR_MS = 3_600_000;
const OFFLINE_AFTER_MS = PRESENCE_LIMITS.offlineAfterMs;
const PENDING_SESSION: Session = {
  sessionId: EXAMPLE_SESSION_ID,
  status: PENDING,
  requester: ALICE,
  target: BOB,
  createdAt: EXAMPLE_TIME,
  expiresAt: EXAMPLE_TIME + HOUR_MS,
  decidedAt: null,
  delivery: "online",
};

const { claims, credential, key_id } = credentialTestVector();
const CREDENTIAL = {
  ok: true,
  agent_id: claims.sub,
  key_id,
  credential,
  issuer: claims.iss,
  expires_at_iso: new Date(Number(claims.exp) * 1000).toISOString(),
};

const OF_PACKAGES: readonly string[] = ["connectors", "packageFile", "newestConnector"] satisfies SurfaceId[];

/** One answer of each operation that is only read, by its id. Source: test/discovery/record-answers.ts. */
export function recordedAnswers({ baseUrl, wsUrl }: DiscoverySettings): Readonly<Record<string, object>> {
  const text = JSON.stringify(recorded)
    .replaceAll(RECORDED.baseUrl, () => baseUrl)
    .replaceAll(RECORDED.wsUrl, () => wsUrl);
  const examples = Object.entries(parseJson(text) as object).map(([id, value]) => {
    return [id, { recorded: { ...(OF_PACKAGES.includes(id) && needs("package")), value } }];
  });
  return Object.fromEntries(examples);
}

/** Answers by operation id, where they depend on what is asked. */
export function writtenAnswers(baseUrl: string): Partial<Record<SurfaceId, Examples>> {
  const online = presenceOf(EXAMPLE_TIME + 1200, EXAMPLE_TIME, EXAMPLE_TIME, OFFLINE_AFTER_MS);
  return {
    sendMessage: { delivered: { ...needs("target_online"), value: acceptedEnvelope(SEND_REQUEST, FIRST, baseUrl) } },
    requestSession: {
      target_online: { ...needs("target_online"), value: acceptedSession(SESSION_REQUEST, FIRST, baseUrl) },
    },
    checkOnline: {
      online: {
        ...needs("target_online"),
        value: presenceOfAgent(BOB, online, { now: EXAMPLE_TIME, windowStartedAt: EXAMPLE_TIME }),
      },
    },
    readSession: { pending: { value: sessionRecord(PENDING_SESSION) } },
    readCredential: { registered: { value: CREDENTIAL } },
    selfTest: {
      pass: {
        value: {
          ok: true,
          stage: "pass",
          type: "agent.register",
          server_time: EXAMPLE_TIME,
          next_step: "Send this envelope, or a new one, over the websocket.",
        },
      },
    },
    submitFeedback: {
      counted: {
        value: {
          ok: true,
          stored: "aggregate_only",
          raw_message_stored: false,
          note: `${FEEDBACK_REACH} ${contactOf(undefined).note}`,
        },
      },
    },
  };
}
