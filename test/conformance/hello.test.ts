import { beforeAll, describe, expect, test } from "@jest/globals";
import { tryUpgrade } from "../support/agent.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice");
const pod = given(() => relay.startWsConnectors());

describe("hello", () => {
  test("comes first and names the service, the connection, the clock and the limits", async () => {
    const socket = await relay.connect(pod);
    const { connector_version, ...hello } = socket.frames[0];
    expect(hello).toMatchObject({
      frame: "hello",
      service: "agent-relay",
      connection_id: expect.any(String),
      server_time: expect.any(Number),
      limits: {
        heartbeat_interval_ms: 15_000,
        heartbeat_max_ms: 30_000,
        stale_after_ms: 45_000,
        max_clock_skew_ms: 300_000,
        max_frame_bytes: 32_768,
        register_within_ms: 10_000,
        max_agents_per_connection: 100,
        envelopes_per_second: 200,
        envelopes_burst: 1000,
        bytes_per_second: 524_288,
        bytes_burst: 1_048_576,
        max_unacknowledged: 64,
      },
    });
    // Only where the relay hands out packages.
    if (connector_version !== undefined) expect(connector_version).toMatch(/^\d+\.\d+\.\d+-b[0-9a-f]{12}$/);
    expect(Math.abs(socket.frames[0].server_time - Date.now())).toBeLessThan(5000);
  });

  test("has `frame` as its first member", async () => {
    const socket = await relay.connect(pod);
    expect(socket.texts[0]).toMatch(/^\{"frame":"hello",/);
  });

  test("names every connection differently", async () => {
    const [one, two] = await Promise.all([relay.connect(pod), relay.connect(pod)]);
    expect(one.frames[0].connection_id).not.toBe(two.frames[0].connection_id);
  });
});

describe("an upgrade", () => {
  test.each(["/ws", "/relay", "/ws?agent=alice", "/relay?"])("is taken at %s", async (path) => {
    const socket = await relay.connect(pod, path);
    expect(socket.frames[0].frame).toBe("hello");
  });

  test("is taken at the alternate path of the settings, and no longer at its default", async () => {
    const other = await relay.startWsConnector({ RELAY_ALTERNATE_WS_PATH: "/agents/live" });
    expect((await tryUpgrade(other, "/agents/live")).status).toBe(101);
    expect((await tryUpgrade(other, "/ws")).status).toBe(101);
    expect((await tryUpgrade(other, "/relay")).status).toBe(404);
  });

  test.each(["/", "/ws/", "/wss", "/WS", "/relay/ws", "/health", "/%77s"])("is answered 404 at %s", async (path) => {
    const { status, problem } = await tryUpgrade(pod, path);
    expect(status).toBe(404);
    expect(problem).toMatchObject({ ok: false, code: "not_found" });
  });

  test("that is no websocket handshake is answered 400", async () => {
    expect((await tryUpgrade(pod, "/ws", { "Sec-WebSocket-Version": "7" })).status).toBe(400);
    expect((await tryUpgrade(pod, "/ws", { "Sec-WebSocket-Key": "short" })).status).toBe(400);
  });

  test.each(["/ws", "/relay"])("is what %s asks for: any other request is answered 426, or 405", async (path) => {
    for (const method of ["GET", "HEAD"]) {
      const plain = await fetch(pod.url + path, { method });
      expect([plain.status, plain.headers.get("upgrade")]).toEqual([426, "websocket"]);
      if (method === "GET") expect(await plain.json()).toMatchObject({ code: "upgrade_required", retry: "fix" });
    }
    const posted = await fetch(pod.url + path, { method: "POST" });
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET"]);
  });

  test("is never granted compression", async () => {
    const { status, headers } = await tryUpgrade(pod, "/ws", { "Sec-WebSocket-Extensions": "permessage-deflate" });
    expect(status).toBe(101);
    expect(headers["sec-websocket-extensions"]).toBeUndefined();
  });
});

describe("the origins that may connect", () => {
  const origin = "https://app.example";
  let choosy: Pod;

  beforeAll(async () => {
    choosy = await relay.startWsConnector({ RELAY_ALLOWED_ORIGINS: `${origin},https://admin.example` });
  });

  test("are any, unless the settings list them", async () => {
    expect((await tryUpgrade(pod, "/ws", { Origin: "https://elsewhere.example" })).status).toBe(101);
  });

  test.each([origin, "https://admin.example"])("hold %s when it is listed", async (listed) => {
    expect((await tryUpgrade(choosy, "/ws", { Origin: listed })).status).toBe(101);
  });

  test.each(["https://elsewhere.example", "https://app.example.evil.example", "http://app.example", "null", ""])(
    "do not hold '%s' when it is not listed",
    async (other) => {
      const { status, problem } = await tryUpgrade(choosy, "/ws", { Origin: other });
      expect(status).toBe(403);
      expect(problem).toMatchObject({ code: "origin_not_allowed" });
    },
  );

  test("do not concern clients without an Origin header", async () => {
    expect((await tryUpgrade(choosy, "/ws")).status).toBe(101);
  });
});

test("A pod at its connection limit answers 503 with Retry-After, until a connection ends", async () => {
  const small = await relay.startWsConnector({ RELAY_MAX_CONNECTIONS: "1" });
  const only = await relay.connect(small);
  const { status, headers, problem } = await tryUpgrade(small, "/ws");
  expect(status).toBe(503);
  expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  expect(problem).toMatchObject({ code: "over_capacity" });
  await only.close();
  await until("there is room again", async () => (await tryUpgrade(small, "/ws")).status === 101);
});
