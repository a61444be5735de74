import { once } from "node:events";
import { createServer } from "node:http";
import { beforeAll, expect, test } from "@jest/globals";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { createApp } from "relay-runtime/http/app.ts";
import { makeApiKey } from "../../deploy/keys/make.ts";
import type { Fields } from "../support/agent.ts";
import { type Answer, HttpClient } from "../support/http.ts";
import { fillTo, unlimited } from "../support/test-redis.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";
import { membersOf, OpenApi } from "./openapi.ts";

/** Each error that openapi.json prints is brought about, and compared with what is printed. */

const MESSAGE = { from: "agent://alice", to: "agent://bob", message: "hi" };
/** Far below what a command of Redis may take. */
const SLOW_MS = 100;
const THREE_QUARTERS_FULL = 0.8;
const MORE_THAN_A_MINUTE_ALLOWS = 31;

const relay = useRelay("alice", "bob", "shy");
giveUpCalls();
const others = Array.from({ length: 4 }, (_, n) => makeApiKey({ id: `alice-${n}`, agents: [MESSAGE.from] }));
const http = new HttpClient();
const gateway = given(async () => {
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  await relay.writeKeys({ api_keys: [...api_keys, ...others.map(({ record }) => record)], signing_keys });
  return await relay.startGateway({ RELAY_PUBLIC_HOSTS: "relay.example" });
});
const view = given(() => relay.view());
const proxy = given(() => relay.proxy());
const slow = given(() => relay.startGateway({ REDIS_URL: proxy.urlFor(relay.redis.urlFor("gateway")) }));
let api: OpenApi;
beforeAll(async () => {
  api = new OpenApi((await http.get(`${gateway.url}/openapi.json`)).body);
});

const send = (body: unknown, headers: Record<string, string> = {}, key = 0) =>
  http.post(`${gateway.url}/v1/messages/send`, body, { "x-api-key": others[key]?.apiKey as string, ...headers });
const selfTest = (fields: Fields, name = "alice") =>
  http.post(`${gateway.url}/api/self-test`, relay.envelope(name, "message.send", { to: MESSAGE.to, ...fields }));

const PROVOKE: Readonly<Record<string, () => Promise<Answer>>> = {
  malformed_json: () => send("{"),
  invalid_request: () => send({ ...MESSAGE, to: "bob" }),
  missing_api_key: () => http.post(`${gateway.url}/v1/messages/send`, MESSAGE),
  invalid_api_key: () => send(MESSAGE, { "x-api-key": "rk_wrong" }),
  api_key_not_allowed_for_sender: () => send({ ...MESSAGE, from: "agent://eve" }),
  not_accepted_by_target: async () => {
    const shy = await relay.connect(await relay.startWsConnector());
    await shy.ask(relay.envelope("shy", "agent.register", { payload: { accept_from: [] } }));
    return await send({ ...MESSAGE, to: "agent://shy" });
  },
  body_too_large: () => send({ ...MESSAGE, message: "x".repeat(40_000) }),
  unsupported_media_type: () => send("hi", { "content-type": "text/plain" }),
  idempotency_key_reused: async () => {
    await send(MESSAGE, { "idempotency-key": "k" });
    return await send({ ...MESSAGE, message: "another" }, { "idempotency-key": "k" });
  },
  // Both wait for Redis at the same time, so that the second comes while the first is under way.
  idempotency_in_progress: async () => {
    proxy.slow(SLOW_MS, SLOW_MS);
    const headers = { "x-api-key": others[1]?.apiKey as string, "idempotency-key": "at-once" };
    const both = [1, 2].map(() => http.post(`${slow.url}/v1/messages/send`, MESSAGE, headers));
    const answers = await Promise.all(both).finally(() => proxy.heal());
    return answers.find(({ status }) => status === 409) as Answer;
  },
  rate_limited: async () => {
    const answers = Array.from({ length: MORE_THAN_A_MINUTE_ALLOWS }, () => send(MESSAGE, {}, 2));
    return (await Promise.all(answers)).find(({ status }) => status === 429) as Answer;
  },
  frame_too_large: () => send({ ...MESSAGE, message: "€".repeat(10_890) }),
  invalid_envelope: () => selfTest({ to: "bob" }),
  clock_skew: () => selfTest({ ts: 1 }),
  unknown_key: () => selfTest({ key_id: "nobody-1" }),
  bad_signature: () => selfTest({ sig: "A".repeat(86) }),
  key_not_allowed: () => selfTest({ from: MESSAGE.from }, "bob"),
  invalid_credential: () =>
    selfTest({ type: "agent.register", key_id: "jkt-x", payload: { credential: "x", relay: "x" } }),
  wrong_relay: () => selfTest({ type: "agent.register", payload: { relay: "other.example" } }),
  unknown_agent: () => http.get(`${gateway.url}/v1/agents/nobody/credential`),
  unknown_session: () => http.get(`${gateway.url}/sessions/ses_00000000000000000000000000`),
  not_found: () => http.get(`${gateway.url}/nowhere`),
  method_not_allowed: () => http.get(`${gateway.url}/v1/messages/send`),
  over_capacity: async () => {
    const isShort = async () => (await http.get(`${gateway.url}/ready`)).body.degraded !== undefined;
    await fillTo(view.client, THREE_QUARTERS_FULL);
    await until("the gateway knows how full Redis is", isShort);
    const answer = await send(MESSAGE, { "idempotency-key": "new" }, 3);
    await unlimited(view.client);
    await until("it knows that there is room again", async () => !(await isShort()));
    return answer;
  },
  unavailable: () => withoutRedis(() => send(MESSAGE, {}, 3)),
  not_ready: () => withoutRedis(() => http.get(`${gateway.url}/ready`)),
  internal_error: async () => {
    const app = createApp({ logger: relay.logger("test"), trustedProxyHops: 0 }).use(() => {
      throw new Error("unforeseen");
    });
    const server = createServer(app.callback()).listen(0, "127.0.0.1");
    relay.defer(() => server.closeAllConnections());
    relay.defer(() => server.close());
    await once(server, "listening");
    return await http.get(`http://127.0.0.1:${(server.address() as { port: number }).port}/`);
  },
};

async function withoutRedis(ask: () => Promise<Answer>): Promise<Answer> {
  await relay.redis.pause();
  try {
    return await ask();
  } finally {
    await relay.redis.resume();
  }
}

test.each(Object.keys(PROVOKE) as ErrorCode[])(
  "%s has the members that its example shows",
  async (code) => {
    const { status, body } = await (PROVOKE[code] as () => Promise<Answer>)();
    expect([status, body.code]).toEqual([ERRORS[code].httpStatus, code]);
    const { value } = api.document.components.examples[code];
    expect(membersOf(value)).toEqual(membersOf(body));
    for (const name of ["type", "title", "status", "code", "retry"]) expect(value[name]).toBe(body[name]);
  },
  60_000,
);

test("Every error that was brought about is told of the operation that answered so", () => {
  const { 400: refused } = api.operationAt("post", "/v1/messages/send").responses;
  expect(Object.keys(refused.content["application/problem+json"].examples)).toContain("frame_too_large");
});

test("No error stands in the document without having been brought about here", () => {
  expect(Object.keys(api.document.components.examples).sort()).toEqual(Object.keys(PROVOKE).sort());
});
