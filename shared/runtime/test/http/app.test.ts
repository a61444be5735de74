import { describe, expect, jest, test } from "@jest/globals";
import type Koa from "koa";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { seriesIn } from "../../../../test/support/http.ts";
import { observeAnswers, ServiceMetrics } from "../../src/metrics/service-metrics.ts";
import { serve, useServer } from "./kit.ts";

const handlers: Record<string, (ctx: Koa.Context) => void> = {
  "/address": (ctx) => {
    ctx.body = { address: ctx.ip };
  },
  "/cacheable": (ctx) => {
    ctx.set("Cache-Control", "public, max-age=60");
    ctx.body = { ok: true };
  },
  "/cacheable-fault": (ctx) => {
    ctx.set("Cache-Control", "public, max-age=60");
    throw new Error("SECRET-fault");
  },
  "/unavailable": () => {
    throw new ServiceError("unavailable", { retryAfterMs: 1200 });
  },
  "/clock": () => {
    throw new ServiceError("clock_skew");
  },
  "/key": () => {
    throw new ServiceError("invalid_api_key");
  },
  "/thrown-text": () => {
    throw "SECRET-text";
  },
};

describe("every answer of a service", () => {
  const running = useServer((ctx) => handlers[ctx.path]?.(ctx));

  const get = (path: string, init?: RequestInit) => fetch(running.url + path, init);

  test("is kept by no cache, unless its handler says so", async () => {
    expect((await get("/address")).headers.get("cache-control")).toBe("no-store");
    expect((await get("/nowhere")).headers.get("cache-control")).toBe("no-store");
    expect((await get("/cacheable")).headers.get("cache-control")).toBe("public, max-age=60");
  });

  test("is kept by no cache when a cacheable surface fails", async () => {
    expect((await get("/cacheable-fault")).headers.get("cache-control")).toBe("no-store");
  });

  test("carries security headers, refusals included", async () => {
    for (const path of ["/address", "/nowhere", "/cacheable-fault"]) {
      const { headers } = await get(path);
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("x-powered-by")).toBeNull();
    }
  });

  test("is a problem document when there is nothing at the path", async () => {
    const response = await get("/nowhere?x=SECRET");
    expect(response.status).toBe(404);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    expect(await response.json()).toEqual({
      type: "urn:agent-relay:problem:not_found",
      title: expect.any(String),
      status: 404,
      detail: expect.any(String),
      ok: false,
      code: "not_found",
      hint: expect.any(String),
      retry: "never",
    });
  });

  test("says when to come back, in whole seconds rounded up and in milliseconds", async () => {
    const response = await get("/unavailable");
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("2");
    expect(await response.json()).toMatchObject({ code: "unavailable", retry_after_ms: 1200, retry_after_seconds: 2 });
  });

  test("tells the server's time to a client whose clock is off", async () => {
    const { server_time } = (await (await get("/clock")).json()) as { server_time: number };
    expect(Math.abs(server_time - Date.now())).toBeLessThan(60_000);
  });

  test("names the scheme when a key is asked for", async () => {
    expect((await get("/key")).headers.get("www-authenticate")).toMatch(/^ApiKey /);
  });

  test("tells nothing of an unforeseen fault, and logs it without the request", async () => {
    const response = await get("/cacheable-fault?q=SECRET-query", { headers: { "x-api-key": "SECRET-key" } });
    const body = await response.text();
    expect(response.status).toBe(500);
    expect(JSON.parse(body).code).toBe("internal_error");
    expect(body).not.toContain("SECRET");
    const logged = running.log.find((line) => line.includes('"level":"error"'));
    expect(logged).toContain("SECRET-fault");
    expect(logged).not.toMatch(/SECRET-(query|key)/);
  });

  test("is a 500 even when what was thrown is no error", async () => {
    const response = await get("/thrown-text");
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("SECRET");
  });

  test("has the same head without a body for HEAD", async () => {
    const [whole, head] = [await get("/address"), await get("/address", { method: "HEAD" })];
    expect(head.status).toBe(200);
    expect(head.headers.get("content-length")).toBe(whole.headers.get("content-length"));
    expect(await head.text()).toBe("");
    expect((await get("/nowhere", { method: "HEAD" })).status).toBe(404);
  });
});

describe("pages of other origins", () => {
  const running = useServer((ctx) => handlers[ctx.path]?.(ctx));

  const preflight = (method: string) =>
    fetch(`${running.url}/address`, {
      method: "OPTIONS",
      headers: {
        Origin: "https://page.example",
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "x-api-key",
      },
    });

  test("may read, refusals and rate limits included", async () => {
    for (const path of ["/address", "/nowhere"]) {
      const { headers } = await fetch(running.url + path, { headers: { Origin: "https://page.example" } });
      expect(headers.get("access-control-allow-origin")).toBe("*");
      const exposed = headers.get("access-control-expose-headers")?.split(",");
      expect(exposed).toEqual(["RateLimit", "RateLimit-Policy", "Retry-After", "Idempotent-Replayed"]);
    }
  });

  test("learn from a preflight that they may read, but send no key", async () => {
    const response = await preflight("GET");
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("access-control-allow-methods")).toBe("GET,HEAD");
    expect(response.headers.get("access-control-allow-headers")).not.toMatch(/x-api-key/i);
  });

  test("may not write", async () => {
    expect((await preflight("POST")).headers.get("access-control-allow-origin")).toBeNull();
    const { headers } = await fetch(`${running.url}/address`, {
      method: "POST",
      headers: { Origin: "https://page.example" },
    });
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("the client's address", () => {
  const addressSeen = async (trustedProxyHops: number, forwarded: string): Promise<string> => {
    const { server, url } = await serve((ctx) => handlers["/address"]?.(ctx), trustedProxyHops);
    const response = await fetch(`${url}/address`, { headers: { "X-Forwarded-For": forwarded } });
    await server.stop();
    return ((await response.json()) as { address: string }).address;
  };

  test("is the peer's without a trusted proxy, whatever X-Forwarded-For says", async () => {
    expect(await addressSeen(0, "203.0.113.9")).toBe("127.0.0.1");
  });

  test("is the entry that the one trusted proxy wrote, not what the client forged before it", async () => {
    expect(await addressSeen(1, "203.0.113.9, 10.0.0.1, 198.51.100.7")).toBe("198.51.100.7");
  });

  test("is the entry that the outer of two trusted proxies wrote", async () => {
    expect(await addressSeen(2, "203.0.113.9, 198.51.100.7, 10.0.0.1")).toBe("198.51.100.7");
  });
});

test("An answer is timed from when its handler began, by its group, a refusal too", async () => {
  const metrics = new ServiceMetrics("gateway");
  let clockMs = 1000;
  const clock = jest.spyOn(performance, "now").mockImplementation(() => clockMs);
  const running = await serve((ctx) => {
    observeAnswers(metrics, ctx.app);
    Object.assign(ctx.state, { surface: { group: "guides" } });
    clockMs += 6;
    throw new ServiceError("unavailable");
  });
  expect((await fetch(running.url)).status).toBe(503);
  await running.server.stop();
  clock.mockRestore();
  const { value } = seriesIn(await metrics.registry.metrics());
  expect(value("relay_http_request_seconds_sum", { group: "guides" })).toBe(0.006);
});
