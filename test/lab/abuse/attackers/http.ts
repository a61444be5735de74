import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import { API_KEY_AGENTS } from "../support/names.ts";
import type { Target } from "../target.ts";
import { flood } from "./http-load.ts";

/** Requests in great number, each of which is answered. */

/** An address sends twice as many as it may in a minute: every limit is reached, and there are many addresses. */
const BEYOND = 2;
const PUBLIC_OF_AN_ADDRESS = BEYOND * HTTP_LIMITS.publicRequestsPerMinute;
const KEYS_OF_AN_ADDRESS = BEYOND * HTTP_LIMITS.failedKeysPerMinute;
const FEEDBACK = JSON.stringify({ surface: "home", category: "x".repeat(100), message: "y".repeat(8000) });
const READS = { connections: 400, underWay: 1 };
const COMPRESSED = ["Accept-Encoding: br"];
const { trafficDaily, sessionJourneys, diagnostics, activationPlan, sessionRequestGuide } = SURFACES;
const REPORTS = [trafficDaily, sessionJourneys, diagnostics, activationPlan, sessionRequestGuide];
const { agentManifest, openapi, instructions, discoveryIndex, home } = SURFACES;
const DOCUMENTS = [agentManifest, openapi, instructions, discoveryIndex, home];

export async function readsOfReports(target: Target) {
  return reads(target, target.reports, REPORTS);
}

export async function readsOfDocuments(target: Target) {
  return reads(target, target.gateway, DOCUMENTS);
}

/** From one address, what is long and compressed for each request. */
function reads(target: Target, port: number, surfaces: readonly { readonly path: string }[]) {
  const path = (n: number) => surfaces[n % surfaces.length]?.path as string;
  return flood(target, port, (n) => ({ path: path(n), address: 0, lines: COMPRESSED }), READS);
}

export async function journeys(target: Target) {
  return flood(target, target.gateway, (n) => ({ path: "/api/onboarding/online-agents", address: n }));
}

export async function presenceOfAll(target: Target) {
  const path = (n: number) => `/api/onboarding/check-online?agent_id=agent://unknown-${n}`;
  return flood(target, target.gateway, (n) => ({ path: path(n), address: Math.floor(n / PUBLIC_OF_AN_ADDRESS) }));
}

export async function guidesToAll(target: Target) {
  const path = (n: number) => `/api/public/session-request-guide?target_agent_id=agent://unknown-${n}`;
  return flood(target, target.reports, (n) => ({ path: path(n), address: Math.floor(n / PUBLIC_OF_AN_ADDRESS) }));
}

export async function feedback(target: Target) {
  return flood(target, target.gateway, (n) => ({
    path: "/api/public/feedback",
    address: Math.floor(n / PUBLIC_OF_AN_ADDRESS),
    body: FEEDBACK.replace("home", `surface-${n}`),
  }));
}

export async function guessedApiKeys(target: Target) {
  return flood(target, target.gateway, (n) => ({
    path: "/v1/messages/send",
    address: Math.floor(n / KEYS_OF_AN_ADDRESS),
    body: "{}",
    lines: [`X-Api-Key: rk_${String(n).padStart(36, "0")}`],
  }));
}

export async function idempotencyKeys(target: Target) {
  const from = `agent://${API_KEY_AGENTS}.a`;
  return flood(target, target.gateway, (n) => ({
    path: "/v1/messages/send",
    address: n % target.apiKeys.length,
    body: JSON.stringify({ from, to: "agent://unknown", message: `${n}` }),
    lines: [`X-Api-Key: ${target.apiKeys[n % target.apiKeys.length]}`, `Idempotency-Key: key-${n}`],
  }));
}
