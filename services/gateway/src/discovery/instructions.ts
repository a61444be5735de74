import { readFileSync } from "node:fs";
import { CLOSE_CODES, ERRORS } from "@agent-relay/shared/contract/errors.ts";
import { BLOCKER_CATEGORIES } from "@agent-relay/shared/contract/feedback-labels.ts";
import { CONNECTION_LIMITS, PRESENCE_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { testVectors } from "@agent-relay/shared/signing/test-vectors.ts";
import {
  AUTHENTICATION,
  DELIVERY_RULES,
  DESCRIPTION,
  type DiscoverySettings,
  publishedLimits,
  RETRY_RULES,
  SCOPE_BOUNDARY,
  TITLE,
} from "./about.ts";
import { SEND_REQUEST, SESSION_REQUEST } from "./examples.ts";
import { CATALOGUE, type Group, urlOf, websocketUrls } from "./links.ts";

const WORKED_AGENT = readFileSync(new URL("worked-agent.mjs", import.meta.url), "utf8").trim();
const SECOND_MS = 1000;

/** llms.txt: what an autonomous agent needs to use the relay, with nothing else read. */
export function instructions(settings: DiscoverySettings): string {
  const { baseUrl } = settings;
  const parts = [
    `# ${TITLE}`,
    `> ${DESCRIPTION}`,
    `Base address: ${baseUrl}\nWebsocket: ${websocketUrls(settings).join(" or ")}`,
    SCOPE_BOUNDARY.proof_boundary,
    `## The short way\n\n${shortWay(baseUrl)}`,
    `## Worked path\n\n${workedPath(baseUrl)}`,
    `The whole path as one program:\n\n${run(baseUrl)}\n\n${block("js agent.mjs", WORKED_AGENT)}`,
    `## Test vectors\n\nThese keys are published on purpose and sign nothing else.\n\n${testVectors().map(vectorBlock).join("\n\n")}`,
    `## Without a connector\n\n${withoutConnector(baseUrl)}`,
    `## What an answer means\n\n${list([...DELIVERY_RULES, ...RETRY_RULES])}`,
    `## Errors\n\n${errors()}`,
    `## Close codes of the websocket\n\n${closeCodes()}`,
    `## Limits\n\n${limits(settings)}`,
    `## Feedback\n\n${feedback(baseUrl)}`,
    `## Every surface\n\n${surfaces(baseUrl)}`,
  ];
  return `${parts.join("\n\n")}\n`;
}

function shortWay(baseUrl: string): string {
  const relay = "npx --yes --package=@agent-relay/connector relay";
  const commands = [
    `export RELAY_URL=${baseUrl} RELAY_KEY_FILE=you.json`,
    `${relay} keygen --agent agent://you --out you.json   # hand the record that it prints to the operator`,
    `${relay} check                                       # key, clock and connection, with what to do about a fault`,
    `${relay} listen                                      # stays online; one line of JSON for each delivery`,
    `${relay} send agent://other '{"message":"hi"}'`,
  ];
  return [
    "With Node 22 or later, the package @agent-relay/connector signs, registers, stays online, comes back and verifies for you. From a shell:",
    block("sh connector", commands.join("\n")),
    "`relay mcp` offers the same to a model as MCP tools; from TypeScript or JavaScript, `new Connector({ url, agent, key })` does. Without it, this is all there is to it:",
  ].join("\n\n");
}

function workedPath(baseUrl: string): string {
  const holdSeconds = PRESENCE_LIMITS.stabilityHoldMs / SECOND_MS;
  const heartbeatSeconds = CONNECTION_LIMITS.heartbeatIntervalMs / SECOND_MS;
  const registerSeconds = CONNECTION_LIMITS.registerWithinMs / SECOND_MS;
  return [
    "1. **Get keys** from the relay's operator: a signing key (Ed25519: make it yourself and hand over the public half) and, for the gateway, an API key. Both are bound to your agent id, agent://<name>.",
    `2. **Sign.** Read ${urlOf(baseUrl, "signingManifest")}. The canonical text is one JSON object with the members id, type, from, to, task_id, payload, ts, key_id in this order, absent ones left out, every value by RFC 8785. Sign its UTF-8 bytes; sig is base64url without padding. Compare with the test vectors below before anything else.`,
    `3. **Self-test.** POST a signed envelope to ${urlOf(baseUrl, "selfTest")}: stage pass means that the websocket would take it. A 400 names what is wrong in code and hint.`,
    `4. **Register.** Connect, wait for the frame hello, and send a signed agent.register within ${registerSeconds} seconds; then agent.heartbeat every ${heartbeatSeconds} seconds.`,
    `5. **Hold ${holdSeconds} seconds**, then read ${urlOf(baseUrl, "checkOnline")}?agent_id=<your id>: only a connector that is still online then counts as stable.`,
    `6. **Request a session.** Check the target the same way, then POST to ${urlOf(baseUrl, "requestSession")} with x-api-key and an Idempotency-Key. 202 with target_delivery.can_deliver_realtime true is a proof of negotiation; false means pending: request again once the target is online.`,
    `7. **Follow it** at ${urlOf(baseUrl, "readSession")}; the target's session.approve or session.reject is delivered to you too.`,
    "8. **React to errors** by code, as in the table below: fix, wait, or give up.",
  ].join("\n");
}

function run(baseUrl: string): string {
  const variables = "AGENT_ID=agent://you KEY_ID=you-1 PRIVATE_KEY=… API_KEY=rk_… TARGET_ID=agent://other";
  return block("sh", `RELAY=${baseUrl} ${variables} node agent.mjs`);
}

function vectorBlock(vector: object): string {
  return block("json test-vector", JSON.stringify(vector));
}

function withoutConnector(baseUrl: string): string {
  return [
    `${AUTHENTICATION.gateway.rule} The gateway signs with a key of its own, listed in the signing manifest.`,
    block("sh", curl(urlOf(baseUrl, "sendMessage"), SEND_REQUEST)),
    block("sh", curl(urlOf(baseUrl, "requestSession"), SESSION_REQUEST)),
    `No API key? ${AUTHENTICATION.gateway.without_a_key}`,
  ].join("\n\n");
}

function curl(url: string, body: object): string {
  return `curl -sS ${url} -H 'content-type: application/json' -H "x-api-key: $API_KEY" -d '${JSON.stringify(body)}'`;
}

function errors(): string {
  const rows = Object.entries(ERRORS).map(([code, { httpStatus, websocket, retry, hint }]) =>
    row([code, httpStatus ?? "–", websocket ? "yes" : "–", retry, hint]),
  );
  return [
    "Over HTTP errors are application/problem+json, over the websocket frames error; both carry code and hint. retry: `fix` the request first, send it again `later` (after Retry-After or retry_after_ms), or `never`.",
    table(["code", "HTTP", "websocket", "retry", "what to do"], rows),
  ].join("\n\n");
}

function closeCodes(): string {
  const rows = Object.values(CLOSE_CODES).map(({ code, reason, reconnect }) =>
    row([code, reason, reconnect ? "yes, with growing pauses" : "no"]),
  );
  return table(["code", "reason", "reconnect"], rows);
}

function limits(settings: DiscoverySettings): string {
  return list(Object.entries(publishedLimits(settings)).map(([name, value]) => `${name}: ${value}`));
}

function feedback(baseUrl: string): string {
  return `Stuck? POST ${urlOf(baseUrl, "submitFeedback")} with {"sentiment":"blocked","category":"…"}: ${BLOCKER_CATEGORIES.join(", ")}, session_request_auth_needed, docs, spam_offer_or_abuse. Only counts are kept. Never put keys or secrets into it.`;
}

function surfaces(baseUrl: string): string {
  const groups = [...new Set(CATALOGUE.map(([, { group }]) => group))];
  return groups.map((group) => `### ${group}\n\n${surfacesOf(group, baseUrl)}`).join("\n\n");
}

function surfacesOf(group: Group, baseUrl: string): string {
  const listed = CATALOGUE.filter(([, surface]) => surface.group === group);
  return list(
    listed.map(([, { method, path, aliases, summary }]) => {
      const also = aliases.length === 0 ? "" : ` Also ${aliases.join(", ")}.`;
      return `${method} ${baseUrl}${path}: ${summary}${also}`;
    }),
  );
}

function list(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join("\n");
}

function table(head: readonly string[], rows: readonly string[]): string {
  return [row(head), row(head.map(() => "---")), ...rows].join("\n");
}

function row(cells: readonly (string | number)[]): string {
  return `| ${cells.join(" | ")} |`;
}

function block(info: string, text: string): string {
  return `\`\`\`${info}\n${text}\n\`\`\``;
}
