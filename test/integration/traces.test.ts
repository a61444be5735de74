import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { AgentSocket } from "../support/agent.ts";
import { type Answer, HttpClient } from "../support/http.ts";
import { OtlpReceiver, type ReceivedSpan } from "../support/otlp-receiver.ts";
import { ownTime } from "../support/time.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** What a collector is told of an envelope on its way, and what is told of it to nobody. */

const relay = useRelay("alice", "bob");
const http = new HttpClient();
const collector = given(async () => {
  const receiver = await new OtlpReceiver().start();
  relay.defer(() => receiver.stop());
  return receiver;
});
const traced = () => ({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
const gateway = given(() => relay.startGateway(traced()));
const [here, there] = [given(() => relay.startWsConnector(traced())), given(() => relay.startWsConnector(traced()))];
const alice = given(() => relay.online(here, "alice")) as AgentSocket;
const bob = given(() => relay.online(there, "bob")) as AgentSocket;

// Who is not heard for 45 s is stale, and has nothing delivered. The concurrent tests, which wait for a collector, begin before that.
beforeEach(async () => {
  await alice.ask(relay.envelope("alice", "agent.heartbeat"));
  await bob.ask(relay.envelope("bob", "agent.heartbeat"));
});

const SERVER = 2;
const CLIENT = 3;
const CONSUMER = 5;
const newTraceId = () => randomBytes(16).toString("hex");
const callerSpan = "00f067aa0ba902b7";
const parentOf = (traceId: string, flags = "01") => ({ traceparent: `00-${traceId}-${callerSpan}-${flags}` });

async function send(
  fields: Record<string, string> = {},
  members: object = {},
  { url }: { readonly url: string } = gateway,
): Promise<Answer> {
  const body = { from: "agent://alice", to: "agent://bob", message: "told to bob alone", ...members };
  return await http.post(`${url}/v1/messages/send`, body, { ...relay.credentials("alice"), ...fields });
}

/** What spans say, but for their ids and times. */
const told = ({ service, name, kind, attributes, isError }: ReceivedSpan) => ({
  service,
  name,
  kind,
  attributes,
  isError,
});

function expectChain(spans: readonly ReceivedSpan[]): void {
  for (const [n, span] of spans.slice(1).entries()) {
    const before = spans[n] as ReceivedSpan;
    expect(span.parentSpanId).toBe(before.spanId);
    expect(span.endNs).toBeGreaterThanOrEqual(span.startNs);
  }
}

test.concurrent("a send over HTTP is one trace of its caller: the request, its acceptance, and its delivery at the pod of its target", async () => {
  const traceId = newTraceId();
  expect((await send(parentOf(traceId))).status).toBe(202);
  const spans = await collector.trace(traceId, 3);
  expect(spans.map(told)).toEqual([
    {
      service: "gateway",
      name: "POST /v1/messages/send",
      kind: SERVER,
      isError: false,
      attributes: {
        "http.request.method": "POST",
        "http.route": "/v1/messages/send",
        "http.response.status_code": 202,
      },
    },
    {
      service: "gateway",
      name: "accept",
      kind: CLIENT,
      isError: false,
      attributes: {
        "agent_relay.kind": "message",
        "agent_relay.partition": expect.any(Number),
        "agent_relay.outcome": "accepted",
        "agent_relay.delivery": "online",
      },
    },
    {
      service: "ws-connector",
      name: "deliver",
      kind: CONSUMER,
      isError: false,
      attributes: { "agent_relay.outcome": "sent" },
    },
  ]);
  expect(spans[0]?.parentSpanId).toBe(callerSpan);
  expectChain(spans);
});

test.concurrent("an envelope over a websocket is a trace that begins where it comes in, and ends at the pod of its target; sessions too", async () => {
  const request = relay.envelope("alice", "session.request", {
    to: "agent://bob",
    payload: { purpose: "told to bob alone" },
  });
  const { session_id } = await alice.ask(request);
  await bob.delivered(request.id);
  await bob.ask(relay.envelope("bob", "session.approve", { to: "agent://alice", payload: { session_id } }));
  await alice.ask(
    relay.envelope("alice", "message.send", { to: "agent://bob", payload: { text: "told to bob alone" } }),
  );
  const begins = () => collector.spans.filter(({ name, parentSpanId }) => name === "send" && parentSpanId === "");
  await until("three sends", () => begins().length >= 3);
  for (const kind of ["session_request", "session_decision", "message"]) {
    const begin = begins().find(({ attributes }) => attributes["agent_relay.kind"] === kind) as ReceivedSpan;
    const spans = await collector.trace(begin.traceId, 3);
    const outcome = { "agent_relay.outcome": "accepted", "agent_relay.delivery": "online" };
    const of = { "agent_relay.kind": kind };
    expect(spans.map(told)).toEqual([
      { service: "ws-connector", name: "send", kind: SERVER, isError: false, attributes: { ...of, ...outcome } },
      {
        service: "ws-connector",
        name: "accept",
        kind: CLIENT,
        isError: false,
        attributes: { ...of, ...outcome, "agent_relay.partition": expect.any(Number) },
      },
      {
        service: "ws-connector",
        name: "deliver",
        kind: CONSUMER,
        isError: false,
        attributes: { "agent_relay.outcome": "sent" },
      },
    ]);
    expectChain(spans);
  }
});

test.concurrent("a session request over HTTP is one too; a duplicate, a replay and what reaches nobody end with their acceptance", async () => {
  const [session, replay, nobody] = [newTraceId(), newTraceId(), newTraceId()];
  const terms = { from: "agent://alice", to: "agent://bob", purpose: "told to bob alone" };
  const fields = { ...relay.credentials("alice"), ...parentOf(session) };
  expect((await http.post(`${gateway.url}/v1/sessions/request`, terms, fields)).status).toBe(202);
  await send({ ...parentOf(newTraceId()), "idempotency-key": "once" });
  await send({ ...parentOf(replay), "idempotency-key": "once" });
  await send(parentOf(nobody), { to: "agent://nobody" });
  expect((await collector.trace(session, 3)).map(({ name }) => name)).toEqual([
    "POST /v1/sessions/request",
    "accept",
    "deliver",
  ]);
  const [, replayed] = await collector.trace(replay, 2);
  const [, unseen] = await collector.trace(nobody, 2);
  expect(replayed?.attributes).toMatchObject({ "agent_relay.outcome": "replayed", "agent_relay.delivery": "online" });
  expect(unseen?.attributes).toMatchObject({ "agent_relay.outcome": "accepted", "agent_relay.delivery": "not_seen" });
});

test.concurrent("what is refused is told by its code; that a client is at fault is no error of the relay", async () => {
  const traceId = newTraceId();
  expect((await send(parentOf(traceId), { from: "agent://bob" })).status).toBe(401);
  const [span] = await collector.trace(traceId, 1);
  const attributes = { "http.response.status_code": 401, "error.type": "api_key_not_allowed_for_sender" };
  expect(span).toMatchObject({ isError: false, attributes });
});

test.concurrent("a text that is no traceparent, and one that is given twice, begin a trace", async () => {
  const before = new Set(collector.spans.map(({ traceId }) => traceId));
  const named = newTraceId();
  const [one, other] = [parentOf(named).traceparent, parentOf(newTraceId()).traceparent];
  for (const traceparent of ["00-zz-01", `${one}-more`, `${one}, ${other}`]) await send({ traceparent });
  const begun = () =>
    collector.spans.filter(
      ({ name, traceId, parentSpanId }) => name.startsWith("POST") && parentSpanId === "" && !before.has(traceId),
    );
  await until("three traces", () => begun().length >= 3);
  expect(collector.spans.filter(({ traceId }) => traceId === named)).toEqual([]);
});

test("no span has an address, an agent, a key, an id of an envelope or a text; no resource names the machine", () => {
  expect(collector.bodies.length).toBeGreaterThan(3);
  const text = collector.bodies.join("\n");
  const ids = [...alice.frames, ...bob.frames].flatMap(({ envelope_id, session_id, connection_id, envelope }) => [
    ...[envelope_id, session_id, connection_id],
    ...[envelope?.id, envelope?.key_id, envelope?.sig],
  ]);
  const answered = http.answers.flatMap((answer) => answer.match(/(?:env|ses)_[0-9A-Za-z]+/g) ?? []);
  const known = [...new Set([...ids, ...answered].filter(Boolean))];
  expect(known.length).toBeGreaterThan(10);
  expect(known.filter((id) => text.includes(id))).toEqual([]);
  expect(text).not.toMatch(/127\.0\.0\.1|alice|bob|nobody|once|told to|undici|node/);
  for (const apiKey of relay.keys.apiKeys.values()) expect(text).not.toContain(apiKey);
  const names = ["service.instance.id", "service.name", "service.namespace"];
  for (const resource of collector.resources) expect(Object.keys(resource).sort()).toEqual(names);
});

test.concurrent("of a caller that did not sample nothing is recorded", async () => {
  const [unsampled, sampled] = [newTraceId(), newTraceId()];
  await send(parentOf(unsampled, "00"));
  await send(parentOf(sampled));
  await collector.trace(sampled, 3);
  expect(collector.spans.filter(({ traceId }) => traceId === unsampled)).toEqual([]);
});

test.concurrent("who has no API key begins no trace, nor joins one", async () => {
  const [without, wrong, sampled] = [newTraceId(), newTraceId(), newTraceId()];
  expect((await send({ ...parentOf(without), "x-api-key": "" })).status).toBe(401);
  expect((await send({ ...parentOf(wrong), "x-api-key": "ark_none" })).status).toBe(401);
  await send(parentOf(sampled));
  await collector.trace(sampled, 3);
  expect(collector.spans.filter(({ traceId }) => traceId === without || traceId === wrong)).toEqual([]);
});

test.concurrent("the target gets the envelope as it was signed: nothing in it is of a trace", async () => {
  const traceId = newTraceId();
  const { envelope_id } = (await send(parentOf(traceId))).body;
  await bob.delivered(envelope_id);
  await collector.trace(traceId, 3);
  expect(bob.texts.filter((text) => text.includes(envelope_id))).toHaveLength(1);
  expect(bob.texts.join("\n")).not.toContain(traceId);
});

test("a share of 0 begins no trace, and joins those of others", async () => {
  const quiet = await relay.startGateway({ ...traced(), OTEL_TRACES_SAMPLER_ARG: "0" });
  const before = collector.spans.length;
  const traceId = newTraceId();
  for (const fields of [{}, { traceparent: "no traceparent" }, parentOf(traceId)]) await send(fields, {}, quiet);
  await collector.trace(traceId, 3);
  const others = collector.spans.slice(before).filter((span) => span.traceId !== traceId);
  expect(others).toEqual([]);
});

describe("a collector that does not answer", () => {
  const silent = given(async () => {
    const server = createServer(() => {}).listen(0, "127.0.0.1");
    await once(server, "listening");
    relay.defer(() => {
      server.closeAllConnections();
      server.close();
    });
    return server;
  });
  const silentUrl = () => `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;

  test("costs no send, and is told of in the log", async () => {
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: silentUrl(), OTEL_EXPORTER_OTLP_TIMEOUT: "200" };
    const process = await relay.startProcess("gateway", settings);
    expect((await send({}, {}, process)).status).toBe(202);
    const lines = () => process.log.filter((line) => line.includes("traces could not be sent"));
    await until("the log tells of it", () => lines().length > 0);
    expect((await send({}, {}, process)).status).toBe(202);
    expect(lines()).toHaveLength(1);
  });

  test("holds up a stop for two seconds at most", async () => {
    const stopping = await relay.startGateway({ OTEL_EXPORTER_OTLP_ENDPOINT: silentUrl() });
    await send({}, {}, stopping);
    expect(await Promise.race([stopping.stop(), ownTime(6000)])).not.toBe("late");
  });
});

test.concurrent("OTEL_SDK_DISABLED switches traces off, whatever else is set", async () => {
  const [off, sampled] = [newTraceId(), newTraceId()];
  const disabled = await relay.startGateway({ ...traced(), OTEL_SDK_DISABLED: "True" });
  await send(parentOf(off), {}, disabled);
  await send(parentOf(sampled));
  await collector.trace(sampled, 3);
  expect(collector.spans.filter(({ traceId }) => traceId === off)).toEqual([]);
});

test("what an operator says of a service is told, and a share of half samples some", async () => {
  const settings = {
    ...traced(),
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    OTEL_SERVICE_NAME: "mine",
  };
  const process = await relay.startProcess("gateway", { ...settings, OTEL_TRACES_SAMPLER_ARG: "0.5" });
  for (let n = 0; n < 20; n += 1) await send({}, {}, process);
  expect(await process.end("SIGTERM")).toBe(0);
  const own = collector.spans.filter(({ service, name }) => service === "mine" && name.startsWith("POST"));
  expect(own.length).toBeGreaterThan(0);
  expect(own.length).toBeLessThan(20);
  const resource = collector.resources.find((attributes) => attributes["service.name"] === "mine");
  expect(resource).toMatchObject({ "deployment.environment.name": "test" });
});
