import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createRelay } from "../../deploy/local/relay.ts";
import { freePort } from "../support/free-port.ts";
import { HttpClient } from "../support/http.ts";
import { PodProcess } from "../support/pod-process.ts";
import { TestRelay } from "../support/relay.ts";
import { type Scrape, scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

type Name = "gateway" | "ws-connector" | "ops-reporting";

/** Every label there may be: closed sets all of them. Those after `service` are of prom-client's process metrics. */
const LABELS = [
  ...["code", "le", "limit", "link", "outcome", "status", "surface", "type", "service"],
  ...["kind", "space", "version", "major", "minor", "patch"],
];
const relay = new TestRelay("alice", "bob-hmac");
const http = new HttpClient();
const pods = new Map<Name, { process: PodProcess; metrics: string }>();

beforeAll(async () => {
  await relay.start();
  for (const name of ["ws-connector", "gateway", "ops-reporting"] as const) {
    const port = await freePort();
    const environment = { ...relay.environment, METRICS_PORT: String(port) };
    const process = await PodProcess.start(`services/${name}/src/main.ts`, environment);
    const metrics = `http://127.0.0.1:${port}/metrics`;
    pods.set(name, { process, metrics });
    await until(`${name} serves its metrics`, () =>
      fetch(metrics)
        .then(({ ok }) => ok)
        .catch(() => false),
    );
  }
});
afterAll(async () => {
  await Promise.all([...pods.values()].map(({ process }) => process.stop()));
  await relay.stop();
});

const pod = (name: Name) => (pods.get(name) as { process: PodProcess }).process;
const metricsOf = (name: Name): Promise<Scrape> => scrape((pods.get(name) as { metrics: string }).metrics);

describe("The connector's metrics", () => {
  test("follow connections, envelopes, deliveries and refusals", async () => {
    const bob = await relay.online(pod("ws-connector"), "bob-hmac");
    const alice = await relay.online(pod("ws-connector"), "alice");
    await alice.ask(relay.envelope("alice", "message.send", { to: "agent://bob-hmac" }));
    const offer = relay.envelope("alice", "message.offer", { to: "agent://bob-hmac" });
    await alice.ask(offer);
    await alice.ask(offer);
    await alice.ask(relay.envelope("alice", "message.send", { to: "agent://nobody" }));
    await alice.ask(relay.envelope("alice", "message.send", { to: "agent://nobody", sig: "A".repeat(86) }));
    await alice.ask(relay.envelope("bob-hmac", "message.send", { to: "agent://alice" }));
    await until("bob has both", () => bob.deliveries.length === 2);
    const during = await metricsOf("ws-connector");
    expect({
      open: during.value("relay_connections"),
      opened: during.value("relay_connections_opened_total"),
      registers: during.value("relay_envelopes_total", { type: "agent.register", outcome: "accepted" }),
      messages: during.value("relay_envelopes_total", { type: "message", outcome: "accepted" }),
      repeats: during.value("relay_envelopes_total", { type: "message", outcome: "duplicate" }),
      toOnline: during.value("relay_deliveries_total", { status: "online" }),
      toNotSeen: during.value("relay_deliveries_total", { status: "not_seen" }),
      sent: during.value("relay_deliver_frames_total", { outcome: "sent" }),
      badSignatures: during.value("relay_refusals_total", { code: "bad_signature" }),
      notRegistered: during.value("relay_refusals_total", { code: "not_registered" }),
      waiting: during.value("relay_outbox_bytes"),
      batched: during.value("relay_acceptance_batch_size_sum"),
    }).toEqual({
      ...{ open: 2, opened: 2, registers: 2, messages: 3, repeats: 1, toOnline: 2, toNotSeen: 1, sent: 2 },
      ...{ badSignatures: 1, notRegistered: 1, waiting: 0, batched: 6 },
    });

    alice.socket.close(4999);
    await bob.close();
    const closed = (code: string) => ({ code });
    await until("both ends are counted", async () => {
      const after = await metricsOf("ws-connector");
      const other = after.value("relay_connections_closed_total", closed("other"));
      const plain = after.value("relay_connections_closed_total", closed("1005"));
      return other === 1 && plain === 1 && after.value("relay_connections") === 0;
    });
  });

  test("count what is refused before it is a connection", async () => {
    await expect(relay.connect(pod("ws-connector"), "/elsewhere")).rejects.toThrow();
    const after = await metricsOf("ws-connector");
    expect(after.value("relay_connections_refused_total", { code: "not_found" })).toBe(1);
  });
});

describe("The gateway's metrics", () => {
  test("count answers by surface and status, refusals by code, and what was sent", async () => {
    const { url } = pod("gateway");
    const message = { from: "agent://alice", to: "agent://nobody", message: "hello" };
    await http.post(`${url}/v1/messages/send`, message, { "x-api-key": relay.keys.apiKeys.get("alice") as string });
    await http.post(`${url}/v1/messages/send`, message, { "x-api-key": "rk_wrong" });
    await http.get(`${url}/of/agent-alice/nothing`);
    const after = await metricsOf("gateway");
    expect({
      accepted: after.value("relay_http_requests_total", { surface: "sendMessage", status: "202" }),
      unauthorised: after.value("relay_http_requests_total", { surface: "sendMessage", status: "401" }),
      unknown: after.value("relay_http_requests_total", { surface: "none", status: "404" }),
      refused: after.value("relay_refusals_total", { code: "invalid_api_key" }),
      envelopes: after.value("relay_envelopes_total", { service: "gateway", type: "message" }),
    }).toEqual({ accepted: 1, unauthorised: 1, unknown: 1, refused: 1, envelopes: 1 });
  });

  test("are not on the port that the edge leads to, and nothing else is on theirs", async () => {
    expect((await http.get(`${pod("gateway").url}/metrics`)).status).toBe(404);
    const { metrics } = pods.get("gateway") as { metrics: string };
    expect((await http.get(metrics.replace("/metrics", "/health"))).status).toBe(404);
    const posted = await http.post(metrics, {});
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET"]);
    expect((await fetch(metrics)).headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("The metrics of every service", () => {
  test("tell of Redis and of the event loop, under labels of closed sets, and of no agent, key or address", async () => {
    await http.get(`${pod("ops-reporting").url}/api/ops/traffic-daily`);
    const secrets = ["agent://", "alice", "bob", "rk_", "127.0.0.1", "win_", "con_", "pod_", "nobody", "offer"];
    for (const name of pods.keys()) {
      const after = await metricsOf(name);
      expect(after.value("relay_redis_up", { service: name, link: name })).toBe(1);
      expect(after.value("relay_redis_call_seconds_count", { link: name })).toBeGreaterThan(0);
      expect(after.value("nodejs_eventloop_lag_p99_seconds")).toBeGreaterThan(0);
      expect([...after.labelNames].filter((label) => !LABELS.includes(label))).toEqual([]);
      expect(secrets.filter((secret) => after.text.includes(secret))).toEqual([]);
    }
  });

  test("say when Redis does not answer, and are there all the same", async () => {
    await relay.redis.pause();
    try {
      // All but a connector's channel, which waits for Redis to go on.
      await until("the links that ask Redis are seen down", async () => {
        const up = [...pods.keys()].map(async (name) =>
          (await metricsOf(name)).value("relay_redis_up", { link: name }),
        );
        return (await Promise.all(up)).every((value) => value === 0);
      });
      await until("what they had no answer to is counted", async () => {
        return ((await metricsOf("ws-connector")).value("relay_redis_failures_total") ?? 0) > 0;
      });
    } finally {
      await relay.redis.resume();
    }
  });
});

test("The relay in one process serves the metrics of its three services in one text", async () => {
  const metricsPort = await freePort();
  const environment = { ...relay.environment, PORT: String(await freePort()), METRICS_PORT: String(metricsPort) };
  const { service } = createRelay({ ...environment, LOG_LEVEL: "silent" }, () => {});
  await service.start();
  try {
    const { text, value } = await scrape(`http://127.0.0.1:${metricsPort}/metrics`);
    for (const name of pods.keys()) expect(value("relay_redis_up", { link: name })).toBe(1);
    const types = text.match(/^# TYPE \S+/gm) ?? [];
    expect(types.length).toBeGreaterThan(20);
    expect(new Set(types).size).toBe(types.length);
  } finally {
    await service.stop();
  }
});
