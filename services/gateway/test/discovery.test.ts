import { describe, expect, test } from "@jest/globals";
import {
  AgentManifest,
  AgentReadableHealth,
  DiscoveryIndex,
  RelayManifest,
  SimpleCapabilities,
} from "relay-protocol/contract/documents.ts";
import { SigningManifest } from "relay-protocol/contract/responses.ts";
import { PROOF_BOUNDARY } from "relay-protocol/contract/session.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { z } from "zod";
import { until } from "../../../test/support/until.ts";
import { securityText } from "../src/discovery/site-files.ts";
import { readGatewaySettings } from "../src/settings.ts";
import { post, useGateway, useGatewayKit } from "./kit.ts";

const BASE = "https://relay.example";
const DAY_MS = 86_400_000;
const kit = useGatewayKit();
const gateway = useGateway(kit, {
  RELAY_PUBLIC_REQUESTS_PER_MINUTE: "777",
  RELAY_OFFLINE_AFTER_MS: "99000",
  RELAY_ENVELOPES_PER_SECOND: "150",
  RELAY_PROOF_FRESHNESS_MS: "123456",
  RELAY_ALTERNATE_WS_PATH: "/agents/live",
});

const get = (path: string) => fetch(gateway.url + path);
const text = async (path: string) => await (await get(path)).text();
const read = async <Schema extends z.ZodType>(path: string, schema: Schema) =>
  schema.parse(await (await get(path)).json());
const CATALOGUE: readonly Surface[] = Object.values(SURFACES);
const OF_PACKAGES: readonly string[] = [SURFACES.packageFile.path, SURFACES.newestConnector.path];

describe("the manifests", () => {
  test("tell the limits that are in force, the settings' included", async () => {
    const { limits } = await read("/.well-known/relay-manifest.json", RelayManifest);
    expect(limits).toMatchObject({
      public_requests_per_minute: 777,
      offline_after_ms: 99_000,
      proof_freshness_window_ms: 123_456,
      gateway_requests_per_minute: 30,
      envelopes_per_second: 150,
      envelopes_burst: 750,
      max_unacknowledged: 64,
      body_max_bytes: 32_768,
      ttl_minutes_min: 5,
      ttl_minutes_max: 1440,
      stability_hold_ms: 90_000,
      retained_proofs: 25,
    });
    expect((await read("/v1/simple-capabilities", SimpleCapabilities)).limits).toEqual(limits);
  });

  test("draw the relay's scope", async () => {
    const manifest = await read("/.well-known/relay-manifest.json", RelayManifest);
    expect(manifest).toMatchObject({
      durable_session_proof_store_configured: false,
      reputation_scores_exposed: false,
      verified_deal_reputation_policy: { status: "roadmap_metadata_only" },
      privacy: { aggregate_only: true, payloads: false },
    });
    expect(manifest.scope_boundary.outside_the_relay).toEqual(
      expect.arrayContaining(["task_execution", "payment", "escrow", "payout", "completion", "reputation_scoring"]),
    );
  });

  test("link every read of the catalogue, those that need a parameter as templates, and no package where there is none", async () => {
    const { links, link_templates } = await read("/.well-known/relay-manifest.json", RelayManifest);
    const reads = CATALOGUE.filter(({ method, path }) => method === "GET" && !OF_PACKAGES.includes(path));
    expect(Object.keys(links).length + Object.keys(link_templates).length).toBe(reads.length);
    expect(links.openapi).toBe(`${BASE}/openapi.json`);
    expect(link_templates).toEqual({
      checkOnline: `${BASE}/api/onboarding/check-online{?agent_id}`,
      readCredential: `${BASE}/v1/agents/{name}/credential{?key_id}`,
      readSession: `${BASE}/sessions/{session_id}`,
    });
  });

  test("name both websocket addresses", async () => {
    const { websocket } = await read("/.well-known/signing-manifest.json", SigningManifest);
    expect(websocket.urls).toEqual(["wss://relay.example/ws", "wss://relay.example/agents/live"]);
    expect((await read("/API/discovery", DiscoveryIndex)).websocket.urls).toEqual(websocket.urls);
  });

  test("of agents hold the whole signing manifest and more, and claim to be no A2A card", async () => {
    const signing = await read("/.well-known/signing-manifest.json", SigningManifest);
    const agent = await read("/.well-known/agent.json", AgentManifest);
    expect(agent).toMatchObject(signing);
    expect(agent).toMatchObject({ is_a2a_agent_card: false, openapi: `${BASE}/openapi.json` });
    expect(agent.readiness).toMatchObject({ ready: `${BASE}/ready`, onlineAgents: expect.any(String) });
    expect(agent.handoff).toMatchObject({ marketplaceHandoffStatus: expect.stringContaining(BASE) });
  });

  test("of surfaces list each one under its group", async () => {
    const { groups } = await read("/API/discovery", DiscoveryIndex);
    const listed = Object.entries(groups).flatMap(([group, entries]) =>
      entries.map(({ method, path, aliases }) => ({ group, method, path, aliases })),
    );
    const expected = CATALOGUE.filter(({ path }) => !OF_PACKAGES.includes(path)).map(
      ({ group, method, path, aliases }) => ({
        group,
        method,
        path,
        aliases: [...aliases],
      }),
    );
    expect(listed).toHaveLength(expected.length);
    expect(listed).toEqual(expect.arrayContaining(expected));
  });
});

test("The request examples of the capabilities are accepted as they stand, with the headers that they say are missing", async () => {
  const { capabilities } = await read("/v1/simple-capabilities", SimpleCapabilities);
  expect(capabilities.map(({ type }) => type)).toEqual(["message.send", "session.request"]);
  for (const { url, method, headers, missing, request_example, request_schema, success_status } of capabilities) {
    const path = url.slice(BASE.length);
    const ask = async (more: object) =>
      await fetch(gateway.url + path, {
        method,
        headers: { ...headers, ...more },
        body: JSON.stringify(request_example),
      });
    const own: Record<string, string> = { "x-api-key": kit.freshKey() };
    const filledIn = Object.fromEntries(missing.map((name) => [name, own[name] as string]));
    expect([path, (await ask(filledIn)).status]).toEqual([path, success_status]);
    expect([path, (await ask({})).status]).toEqual([path, 401]);
    const openapi = (await (await get("/openapi.json")).json()) as { components: { schemas: object } };
    expect(openapi.components.schemas).toHaveProperty(String(request_schema.split("/").at(-1)));
  }
});

describe("security.txt", () => {
  const fields = (document: string) =>
    document
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => line.split(/: (.*)/, 2));

  test("has the fields of RFC 9116, each once, and without a contact says that feedback reaches no person", async () => {
    const document = await text("/.well-known/security.txt");
    expect(Object.fromEntries(fields(document))).toEqual({
      Contact: `${BASE}/api/public/feedback`,
      Expires: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      "Preferred-Languages": "en",
      Canonical: `${BASE}/.well-known/security.txt`,
    });
    expect(fields(document)).toHaveLength(4);
    expect(document).toMatch(/^# .*secrets/im);
    expect(document).toMatch(/^# .*named no contact/im);
    expect(document).toMatch(/^# .*no person/im);
  });

  test("expires in the future, within a year of when it was read, whenever that is", () => {
    const settings = readGatewaySettings(kit.environment());
    for (const now of [Date.UTC(2026, 0, 1), Date.UTC(2028, 1, 29)]) {
      const [, expires] = fields(securityText(settings, now)).find(([name]) => name === "Expires") ?? [];
      const life = Date.parse(expires as string) - now;
      expect(life).toBeGreaterThan(30 * DAY_MS);
      expect(life).toBeLessThan(365 * DAY_MS);
    }
  });
});

describe("the operator's contact", () => {
  const CONTACT = "mailto:relay@example.org?subject=relay";
  const withContact = useGateway(kit, { RELAY_CONTACT: CONTACT });
  const PLACES = ["/llms.txt", "/.well-known/security.txt", "/.well-known/relay-manifest.json"].concat([
    "/.well-known/signing-manifest.json",
    "/.well-known/agent.json",
    "/v1/simple-capabilities",
  ]);
  const readAt = async (url: string) => await (await fetch(url)).text();
  const hintOf = async (url: string, key: object) => {
    const refused = await post(`${url}/v1/messages/send`, {}, { ...key });
    return ((await refused.json()) as { hint: string }).hint;
  };

  test.each(PLACES)("stands in %s; without one it says that there is none", async (path) => {
    expect(await readAt(withContact.url + path)).toContain(CONTACT);
    expect(await readAt(gateway.url + path)).toContain("named no contact");
  });

  test("is the first that security.txt names", async () => {
    expect(await readAt(`${withContact.url}/.well-known/security.txt`)).toContain(`\nContact: ${CONTACT}\n`);
  });

  test("stands in the hint of every 401, beside what feedback cannot do, and in the answer to feedback", async () => {
    const body = { from: "agent://mallory", to: "agent://bob", message: "hi" };
    const notAllowed = await post(`${withContact.url}/v1/messages/send`, body, { "x-api-key": kit.freshKey() });
    expect(await notAllowed.json()).toMatchObject({ status: 401, hint: expect.stringContaining(CONTACT) });
    for (const key of [{}, { "x-api-key": "wrong" }]) {
      expect(await hintOf(withContact.url, key)).toContain(CONTACT);
      expect(await hintOf(gateway.url, key)).toMatch(/no person.*named no contact/);
    }
    const counted = await post(`${withContact.url}/api/feedback`, {});
    expect(await counted.json()).toMatchObject({ note: expect.stringContaining(CONTACT) });
  });
});

describe("what crawlers read", () => {
  test("allows everything, and leads to the map", async () => {
    expect(await text("/robots.txt")).toBe(`User-agent: *\nAllow: /\n\nSitemap: ${BASE}/sitemap.xml\n`);
  });

  test("maps every read that is counted and needs no parameter, and the packages", async () => {
    const mapped = [...(await text("/sitemap.xml")).matchAll(/<loc>(.*?)<\/loc>/g)].map(([, url]) => url);
    const isMapped = ({ path, traffic }: (typeof CATALOGUE)[number]) => traffic || path === "/connectors";
    const expected = CATALOGUE.filter((one) => isMapped(one) && !/\{|robots|sitemap|check-online/.test(one.path));
    expect(mapped).toEqual(expected.map(({ path }) => BASE + path));
  });

  test("may be cached without asking again, unlike everything else", async () => {
    for (const path of ["/robots.txt", "/sitemap.xml"]) {
      expect((await get(path)).headers.get("cache-control")).toBe("public, max-age=3600");
    }
    for (const path of ["/.well-known/security.txt", "/API/discovery", "/v1/simple-capabilities"]) {
      expect((await get(path)).headers.get("cache-control")).toBe("no-store");
    }
  });
});

describe("the health that agents read", () => {
  const health = () => read("/health.agent_readable", AgentReadableHealth);

  test("tells the live state and what it means", async () => {
    expect(await health()).toMatchObject({ ok: true, ready: true, online_agents: 0 });
    await kit.online("agent://bob");
    const state = await health();
    expect(state).toMatchObject({ ready: true, online_agents: 1, stale_agents: 0 });
    expect(state.meaning.not_proven).toContain(PROOF_BOUNDARY);
  });

  test("stays 200 while Redis is away, and then says that it is not ready", async () => {
    await kit.redis.pause();
    try {
      const response = await get("/health.agent_readable");
      expect(response.status).toBe(200);
      expect(AgentReadableHealth.parse(await response.json())).toMatchObject({
        ready: false,
        online_agents: null,
      });
      expect((await get("/openapi.json")).status).toBe(200);
      expect((await get("/.well-known/agent.json")).status).toBe(503);
    } finally {
      await kit.redis.resume();
    }
    await until("the gateway is ready again", async () => (await health()).ready);
  });
});
