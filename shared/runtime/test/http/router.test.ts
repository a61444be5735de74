import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import { FeedbackRequest } from "relay-protocol/contract/requests.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { healthHandler } from "../../src/http/app.ts";
import { readBody } from "../../src/http/input.ts";
import {
  type Handler,
  type Handlers,
  mountSurfaces,
  type OnAnswer,
  type SurfaceContext,
  surfacesOf,
} from "../../src/http/router.ts";
import { exchange, getTarget, useServer } from "./kit.ts";

const echo = (ctx: SurfaceContext) => ({ id: ctx.state.surfaceId, params: ctx.params, query: ctx.state.query });
const handlersOfGateway = () =>
  ({
    ...Object.fromEntries(surfacesOf("gateway").map((id) => [id, echo])),
    health: healthHandler("gateway"),
  }) as unknown as Handlers<"gateway">;

test("a surface under a path that the edge routes to another service is an error at start", () => {
  const surface = SURFACES.sendMessage as { path: string };
  const { path } = surface;
  try {
    surface.path = "/api/ops/send";
    expect(() => mountSurfaces("gateway", handlersOfGateway())).toThrow("/api/ops/send");
  } finally {
    surface.path = path;
  }
});

describe("the surfaces of a service", () => {
  const onAnswer = jest.fn<OnAnswer>();
  beforeEach(() => void onAnswer.mockReset());
  const running = useServer(mountSurfaces("gateway", handlersOfGateway(), onAnswer));

  const ask = (path: string, init?: RequestInit) => fetch(running.url + path, init);

  test("are all reachable under their paths and aliases, with the status of the catalogue", async () => {
    const withoutQuery = surfacesOf("gateway").filter((id) => SURFACES[id].query === null);
    for (const id of withoutQuery) {
      const surface: Surface = SURFACES[id];
      for (const path of [surface.path, ...surface.aliases]) {
        const response = await ask(path.replace(/\{\w+\}/g, "x"), { method: surface.method });
        expect([path, response.status]).toEqual([path, surface.status]);
      }
    }
  });

  test("answer /health from the process alone", async () => {
    const response = await ask("/health");
    expect(await response.json()).toEqual({ ok: true, service: "gateway", status: "healthy" });
  });

  test("find path parameters and a checked query", async () => {
    expect(await (await ask("/sessions/ses_1")).json()).toMatchObject({ params: { session_id: "ses_1" } });
    const checked = await ask("/api/onboarding/check-online?agent_id=agent://alice");
    expect(await checked.json()).toMatchObject({ id: "checkOnline", query: { agent_id: "agent://alice" } });
  });

  test.each(["", "?agent_id=SECRET", "?agent_id=agent://a&agent_id=agent://SECRET", "?agent_id=agent://a&rk_SECRET=1"])(
    "refuse the query '%s' and echo no value of it",
    async (query) => {
      const response = await ask(`/api/onboarding/check-online${query}`);
      const text = await response.text();
      expect(response.status).toBe(400);
      expect(JSON.parse(text)).toMatchObject({ code: "invalid_request", errors: [{ field: expect.any(String) }] });
      expect(text).not.toContain("SECRET");
    },
  );

  test("tell their answers to the traffic count, aliases under the main name, refusals not at all", async () => {
    await ask("/api/feedback", { method: "POST" });
    await ask("/api/onboarding/check-online");
    await ask("/nowhere");
    expect(onAnswer.mock.calls.map(([id, surface]) => [id, surface.path])).toEqual([
      ["submitFeedback", "/api/public/feedback"],
    ]);
  });

  test.each([
    ["DELETE", "/health", "HEAD, GET"],
    ["GET", "/v1/messages/send", "POST"],
    ["PUT", "/api/self-test", "HEAD, GET, POST"],
    ["POST", "/sessions/x", "HEAD, GET"],
    ["PROPFIND", "/health", "HEAD, GET"],
    ["POST", "/api/ops/traffic-daily", "HEAD, GET"],
  ])("refuse %s %s with 405 and Allow", async (method, path, allow) => {
    const response = await ask(path, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe(allow);
    const { code, detail } = (await response.json()) as { code: string; detail: string };
    expect([code, detail]).toEqual(["method_not_allowed", expect.stringContaining(allow)]);
  });

  test("tell their methods to OPTIONS", async () => {
    const response = await ask("/health", { method: "OPTIONS" });
    expect([response.status, response.headers.get("allow")]).toEqual([200, "HEAD, GET"]);
    expect((await ask("/nowhere", { method: "OPTIONS" })).status).toBe(404);
  });

  test("answer HEAD where they answer GET", async () => {
    expect((await ask("/health", { method: "HEAD" })).status).toBe(200);
  });

  test("leave what another service answers to it", async () => {
    expect((await ask("/api/ops/traffic-daily")).status).toBe(404);
  });

  test.each([
    "//health",
    "/health/",
    "/./health",
    "/api/../health",
    "/api/%2e%2e/health",
    "/%68ealth",
    "/health%00",
    "/health%2f",
    "/HEALTH",
    "/health;x=1",
    "/health#x",
    "\\health",
    "/api\\..\\health#",
    "/health\u00a0",
    "*",
    "http:///health",
    "//relay/health",
  ])("do not take %s for /health", async (target) => {
    const bytes = `GET ${target} HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n`;
    const answer = await exchange(running.server.port, Buffer.from(bytes, "latin1"));
    expect(answer).toMatch(/^HTTP\/1\.1 40[04] /);
  });

  test("take a parameter that climbs for the parameter it is", async () => {
    const answer = await getTarget(running.server.port, "/sessions/%2e%2e%2fhealth");
    expect(answer).toContain('{"session_id":"../health"}');
    expect(await getTarget(running.server.port, "/sessions/%zz")).toContain('{"session_id":"%zz"}');
  });

  test("take the absolute form of a target, and believe nothing of its authority", async () => {
    expect(await getTarget(running.server.port, "http://elsewhere.example/health")).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("mounting", () => {
  const ready: Handlers<"ws-connector">["ready"] = () => ({
    ok: true,
    service: "ws-connector",
    ready: true,
    online_agents: 0,
    stale_agents: 0,
    privacy: PRIVACY,
    next_action: "none",
  });

  test("is held to the catalogue by the compiler too", () => {
    const health = healthHandler("ws-connector");
    mountSurfaces("ws-connector", { health, ready });
    // @ts-expect-error a handler is missing
    expect(() => mountSurfaces("ws-connector", { health })).toThrow();
    // @ts-expect-error a handler has no surface
    expect(() => mountSurfaces("ws-connector", { health, ready, selfTest: echo })).toThrow();
    // @ts-expect-error a body is not the catalogue's
    mountSurfaces("ws-connector", { health: () => ({ ok: true }), ready });
  });

  test("gives a handler a context that the body readers take", () => {
    const submitFeedback: Handlers<"gateway">["submitFeedback"] = async (ctx) => {
      const feedback = await readBody(ctx, FeedbackRequest);
      return {
        ok: true,
        stored: "aggregate_only",
        raw_message_stored: feedback.message !== undefined && false,
        note: "",
      };
    };
    const checkOnline: Handler<"checkOnline"> = ({ state }) => {
      const agentId: string = state.query.agent_id;
      throw new Error(agentId);
    };
    expect([submitFeedback, checkOnline]).toHaveLength(2);
  });

  test("fails when a surface has no handler", () => {
    const { selfTest: _, ...handlers } = handlersOfGateway();
    expect(() => mountSurfaces("gateway", handlers as Handlers<"gateway">)).toThrow(/\[selfTest\]/);
  });

  test("fails when a handler has no surface of that service", () => {
    const handlers = { ...handlersOfGateway(), trafficDaily: echo } as unknown as Handlers<"gateway">;
    expect(() => mountSurfaces("gateway", handlers)).toThrow(/\[trafficDaily\]/);
  });
});
