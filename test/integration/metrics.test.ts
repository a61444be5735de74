import { rename } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import { freePort } from "../support/free-port.ts";
import { HttpClient, type Scrape, scrape } from "../support/http.ts";
import { SERVICES, Services } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";

/** Every label there may be: closed sets all of them, `key_id` of the keys file's ids. Those after `service` are of prom-client's process metrics. */
const LABELS = [
  "id",
  ...["code", "deploy", "group", "le", "limit", "link", "outcome", "status", "surface", "type", "service"],
  ...["kind", "space", "version", "major", "minor", "patch"],
];
const relay = useRelay("alice", "bob-hmac");
giveUpCalls();
const http = new HttpClient();
/** A disk that is full. */
const AUDIT = { RELAY_AUDIT_FILE: "/dev/full" };
const services = given(() => Services.start((name, settings) => relay.startService(name, { ...AUDIT, ...settings })));

const metricsOf = (name: ServiceName): Promise<Scrape> => scrape(services.metricsOf(name));

describe("The connector's metrics", () => {
  test("follow connections, envelopes, deliveries and refusals", async () => {
    const bob = await relay.online(services.pod("ws-connector"), "bob-hmac");
    const alice = await relay.online(services.pod("ws-connector"), "alice");
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
      acked: during.value("relay_ack_seconds_count"),
    }).toEqual({
      ...{ open: 2, opened: 2, registers: 2, messages: 3, repeats: 1, toOnline: 2, toNotSeen: 1, sent: 2 },
      ...{ badSignatures: 1, notRegistered: 1, waiting: 0, batched: 6, acked: 6 },
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
    await expect(relay.connect(services.pod("ws-connector"), "/elsewhere")).rejects.toThrow();
    const after = await metricsOf("ws-connector");
    expect(after.value("relay_connections_refused_total", { code: "not_found" })).toBe(1);
  });
});

describe("The gateway's metrics", () => {
  test("count answers by surface and status, refusals by code, and what was sent", async () => {
    const { url } = services.pod("gateway");
    const message = { from: "agent://alice", to: "agent://nobody", message: "hello" };
    await http.post(`${url}/v1/messages/send`, message, relay.credentials("alice"));
    await http.post(`${url}/v1/messages/send`, message, { "x-api-key": "rk_wrong" });
    await http.get(`${url}/of/agent-alice/nothing`);
    const after = await metricsOf("gateway");
    expect({
      accepted: after.value("relay_http_requests_total", { surface: "sendMessage", status: "202" }),
      unauthorised: after.value("relay_http_requests_total", { surface: "sendMessage", status: "401" }),
      unknown: after.value("relay_http_requests_total", { surface: "none", status: "404" }),
      refused: after.value("relay_refusals_total", { code: "invalid_api_key" }),
      envelopes: after.value("relay_envelopes_total", { service: "gateway", type: "message" }),
      timed: after.value("relay_http_request_seconds_count", { group: "gateway" }),
      timedUnknown: after.value("relay_http_request_seconds_count", { group: "none" }),
    }).toEqual({
      ...{ accepted: 1, unauthorised: 1, unknown: 1, refused: 1, envelopes: 1 },
      timed: 2,
      timedUnknown: 1,
    });
  });

  test("are not on the port that the edge leads to, and nothing else is on theirs", async () => {
    expect((await http.get(`${services.pod("gateway").url}/metrics`)).status).toBe(404);
    const metrics = services.metricsOf("gateway");
    expect((await http.get(metrics.replace("/metrics", "/health"))).status).toBe(404);
    const posted = await http.post(metrics, {});
    expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET"]);
    expect((await fetch(metrics)).headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("Refusals by key", () => {
  const SERIES = "relay_key_refusals_total";
  const keysFile = () => KeysFile.parse(relay.keys.file);
  const KINDS = { gateway: "api", "ws-connector": "key" } as const;
  const countOf = async (name: keyof typeof KINDS, id: string) =>
    (await metricsOf(name)).value(SERIES, { kind: KINDS[name], id }) ?? 0;

  test("name the API key that was valid, and never one that was not", async () => {
    const send = (key: object, changes = {}) =>
      http.post(
        `${services.pod("gateway").url}/v1/messages/send`,
        { from: "agent://alice", to: "agent://bob-hmac", message: "hi", ...changes },
        { ...key },
      );
    const apiKeyId = keysFile().api_keys.find(({ agents }) => agents.includes("agent://alice"))?.id ?? "";
    await send(relay.credentials("alice"), { from: "agent://mallory" });
    await send(relay.credentials("alice"), { more: 1 });
    await send(relay.credentials("alice"));
    for (const key of [{}, { "x-api-key": "rk_wrong" }, { "x-api-key": apiKeyId }]) await send(key);
    expect(await countOf("gateway", apiKeyId)).toBe(2);
    expect((await metricsOf("gateway")).value(SERIES)).toBe(2);
  });

  test("count what is over a limit too", async () => {
    const url = `${services.pod("gateway").url}/v1/messages/send`;
    const apiKeyId = keysFile().api_keys.find(({ agents }) => agents.includes("agent://bob-hmac"))?.id ?? "";
    const body = { from: "agent://bob-hmac", to: "agent://alice", message: "hi" };
    const burst = Array.from({ length: 2 * HTTP_LIMITS.gatewayRequestsPerMinute + 1 }, () => body);
    const answers = await Promise.all(burst.map((each) => http.post(url, each, relay.credentials("bob-hmac"))));
    const limited = answers.filter(({ status }) => status === 429).length;
    expect(limited).toBeGreaterThan(0);
    expect(await countOf("gateway", apiKeyId)).toBe(limited);
  });

  test("name the signing key whose holder's connection it is, and no other that somebody writes or sends again", async () => {
    const socket = await relay.connect(services.pod("ws-connector"));
    const before = (await metricsOf("ws-connector")).value(SERIES) ?? 0;
    const envelope = relay.envelope("alice", "message.send", { to: "agent://nobody" });
    expect(await socket.ask({ ...envelope, sig: "A".repeat(86) })).toMatchObject({ code: "bad_signature" });
    expect(await socket.ask({ ...envelope, key_id: "somebody" })).toMatchObject({ code: "unknown_key" });
    expect(await socket.ask({ ...envelope, ts: 0 })).toMatchObject({ code: "clock_skew" });
    expect(await socket.ask(envelope)).toMatchObject({ code: "not_registered" });
    const foreign = relay.envelope("alice", "message.send", { from: "agent://bob-hmac", to: "agent://nobody" });
    expect(await socket.ask(foreign)).toMatchObject({ code: "key_not_allowed" });
    expect((await metricsOf("ws-connector")).value(SERIES) ?? 0).toBe(before);
    const known = await countOf("ws-connector", envelope.key_id);
    const alices = await relay.online(services.pod("ws-connector"), "alice");
    expect(await alices.ask(foreign)).toMatchObject({ code: "key_not_allowed" });
    expect(await countOf("ws-connector", envelope.key_id)).toBe(known + 1);
  });

  test("stand in no report and no document", async () => {
    const paths = ["/api/diagnostics", "/api/ops/traffic-daily", "/api/public/feedback-summary"];
    const { api_keys, signing_keys } = keysFile();
    const ids = [...api_keys.map(({ id }) => id), ...signing_keys.map(({ key_id }) => key_id)];
    for (const path of paths) {
      const text = JSON.stringify((await http.get(services.pod("ops-reporting").url + path)).body);
      expect(ids.filter((id) => text.includes(`"${id}"`))).toEqual([]);
    }
  });
});

describe("The metrics of every service", () => {
  test("tell of Redis and of the event loop, under labels of closed sets, and of no agent or address; of keys their ids alone", async () => {
    const report = await http.get(`${services.pod("ops-reporting").url}/api/ops/traffic-daily`);
    const startedAt = (report.body as { window_started_at: number }).window_started_at;
    const secrets = ["agent://", "alice", "bob", "rk_", "127.0.0.1", "win_", "con_", "pod_", "nobody", "offer"];
    for (const name of SERVICES) {
      const after = await metricsOf(name);
      expect(after.value("relay_redis_up", { service: name, link: name })).toBe(1);
      expect(after.value("relay_partitions_out_of_reach")).toBe(0);
      expect(after.value("relay_window_start_time_seconds", { deploy: "local" })).toBe(startedAt / 1000);
      expect(after.value("relay_redis_call_seconds_count", { link: name })).toBeGreaterThan(0);
      expect(after.value("nodejs_eventloop_lag_p99_seconds")).toBeGreaterThan(0);
      expect([...after.labelNames].filter((label) => !LABELS.includes(label))).toEqual([]);
      const withoutKeyIds = after.text.replace(/^relay_key_refusals_total\{.*$/gm, "");
      expect(secrets.filter((secret) => withoutKeyIds.includes(secret))).toEqual([]);
    }
  });

  test("and /ready say that a keys file cannot be used, until it can; services stay ready, and know the keys that they had", async () => {
    const readers = ["gateway", "ws-connector"] as const;
    const said = async () =>
      await Promise.all(
        readers.map(async (name) => {
          const { status, body } = await http.get(`${services.pod(name).url}/ready`);
          return [(await metricsOf(name)).value("relay_keys_file_valid"), status, body.degraded];
        }),
      );
    const areSaid = async (valid: number) => (await said()).every(([value]) => value === valid);
    expect(await said()).toEqual(readers.map(() => [1, 200, undefined]));

    await rename(relay.keysFile, `${relay.keysFile}.away`);
    await until("each sees that it is gone", () => areSaid(0));
    expect(await said()).toEqual(readers.map(() => [0, 200, ["keys_file"]]));
    await relay.online(services.pod("ws-connector"), "alice");
    expect((await metricsOf("ops-reporting")).value("relay_keys_file_valid")).toBeUndefined();

    await rename(`${relay.keysFile}.away`, relay.keysFile);
    await until("each sees that it is back", () => areSaid(1));
    expect(await said()).toEqual(readers.map(() => [1, 200, undefined]));
  });

  test.each(["gateway", "ws-connector"] as const)("count lines that the audit log of a %s lost", async (name) => {
    await until("the window that it entered is not in its file", async () => {
      return ((await metricsOf(name)).value("relay_audit_lines_lost_total") ?? 0) > 0;
    });
  });

  test("say when Redis does not answer, and are there all the same", async () => {
    await relay.redis.pause();
    try {
      // All but a connector's channel, which waits for Redis to go on.
      await until("the links that ask Redis are seen down", async () => {
        const up = SERVICES.map(async (name) => (await metricsOf(name)).value("relay_redis_up", { link: name }));
        return (await Promise.all(up)).every((value) => value === 0);
      });
      for (const name of SERVICES) expect((await metricsOf(name)).value("relay_partitions_out_of_reach")).toBe(1);
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
  await relay.startWhole({ METRICS_PORT: String(metricsPort) });
  const { text, value } = await scrape(`http://127.0.0.1:${metricsPort}/metrics`);
  for (const name of SERVICES) expect(value("relay_redis_up", { link: name })).toBe(1);
  const types = text.match(/^# TYPE \S+/gm) ?? [];
  expect(types.length).toBeGreaterThan(20);
  expect(new Set(types).size).toBe(types.length);
});
