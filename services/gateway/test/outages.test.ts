import { afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { NotReady } from "relay-protocol/contract/responses.ts";
import { generateApiKey } from "relay-protocol/signing/api-key.ts";
import { ownTime } from "../../../test/support/time.ts";
import { until } from "../../../test/support/until.ts";
import { createGateway } from "../src/service.ts";
import { readGatewaySettings } from "../src/settings.ts";
import { codeOf, post, type Running, useGatewayKit } from "./kit.ts";

const message = { from: "agent://alice", to: "agent://bob", message: "hi" };
const kit = useGatewayKit();
let gateway: Running;

beforeAll(async () => {
  gateway = await kit.gateway();
});

const send = (headers = {}) =>
  post(`${gateway.url}/v1/messages/send`, message, { "x-api-key": kit.freshKey(), ...headers });
const session = () =>
  post(
    `${gateway.url}/v1/sessions/request`,
    { from: message.from, to: message.to, purpose: "to talk" },
    { "x-api-key": kit.freshKey() },
  );
const get = (path: string) => fetch(gateway.url + path);
const isReady = async () => (await get("/ready")).status === 200;

describe.each([
  ["gone", () => kit.redis.kill(), () => kit.redis.start()],
  ["hung", () => kit.redis.pause(), () => kit.redis.resume()],
] as const)("while Redis is %s", (_how, breakIt, repairIt) => {
  beforeEach(breakIt);
  afterEach(async () => {
    await repairIt();
    await until("the gateway is back", isReady);
  });

  test("whatever needs it is refused within a second, and /health stays 200", async () => {
    const asks: Record<string, () => Promise<Response>> = {
      send: () => send(),
      session,
      checkOnline: () => get("/api/onboarding/check-online?agent_id=agent://bob"),
      onlineAgents: () => get("/api/onboarding/online-agents"),
      lookUp: () => get("/sessions/ses_00000000000000000000000000"),
      feedback: () => post(`${gateway.url}/api/feedback`, {}),
      manifest: () => get("/.well-known/signing-manifest.json"),
    };
    await Promise.all(
      Object.entries(asks).map(async ([name, ask]) => {
        const answer = (await Promise.race([ask(), ownTime(1000)])) as Response;
        expect([name, answer]).not.toEqual([name, "late"]);
        expect([name, answer.headers.get("retry-after")]).toEqual([name, "1"]);
        expect([name, await codeOf(answer)]).toEqual([name, "503 unavailable"]);
      }),
    );
    expect((await get("/health")).status).toBe(200);
    const ready = await get("/ready");
    expect([ready.status, ready.headers.get("content-type")]).toEqual([503, "application/problem+json"]);
    expect(ready.headers.get("retry-after")).toBe("1");
    expect(NotReady.parse(await ready.json())).toMatchObject({
      ...{ ok: false, code: "not_ready", retry: "later", ready: false, service: "gateway" },
      ...{ online_agents: null, stale_agents: null, reason: expect.any(String), next_action: expect.any(String) },
    });
  });

  test("what needs it for a limit alone goes on", async () => {
    expect(await codeOf(post(`${gateway.url}/api/self-test`, {}))).toBe("400 invalid_envelope");
    expect((await get("/api/self-test")).status).toBe(200);
    expect(await codeOf(post(`${gateway.url}/v1/messages/send`, message))).toBe("401 missing_api_key");
  });

  test("API keys are guessed within the limit", async () => {
    const guess = () => post(`${gateway.url}/v1/messages/send`, message, { "x-api-key": generateApiKey() });
    const guesses = Array.from({ length: 61 }, guess);
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
  });
});

test("after Redis came back empty the gateway goes on by itself, in a new window", async () => {
  const { windowId } = await kit.snapshot();
  await kit.redis.restart();
  await until("the gateway is back", isReady);
  expect((await send()).status).toBe(202);
  const after = await kit.snapshot();
  expect(after.windowId).not.toBe(windowId);
  expect(after.counters.get("simple_send_accepted")).toBe(1);
});

test("after a request whose outcome nobody knows, its Idempotency-Key tells", async () => {
  const headers = { "x-api-key": kit.freshKey(), "idempotency-key": "again" };
  const ask = () => send(headers);
  await kit.redis.pause();
  expect((await ask()).status).toBe(503);
  await kit.redis.resume();
  await until("the gateway is back", isReady);
  const before = (await kit.snapshot()).counters.get("simple_send_accepted") ?? 0;
  const answers = [await ask(), await ask()];
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
  const sent = ((await kit.snapshot()).counters.get("simple_send_accepted") ?? 0) - before;
  expect(sent).toBe(answers.every((answer) => answer.headers.has("idempotent-replayed")) ? 0 : 1);
});

test("a gateway that restarts answers a replay as its predecessor did", async () => {
  const headers = { "x-api-key": kit.freshKey(), "idempotency-key": "over-a-restart" };
  const first = await (await send(headers)).text();
  await gateway.stop();
  gateway = await kit.gateway();
  const again = await send(headers);
  expect(again.headers.get("idempotent-replayed")).toBe("true");
  expect(await again.text()).toBe(first);
});

test("a gateway that is stopped while it starts leaves nothing behind", async () => {
  const starting = createGateway(readGatewaySettings(kit.environment()), { logger: kit.logger });
  const started = starting.start();
  await Promise.all([starting.stop(), starting.stop()]);
  await started;
  const { link } = await kit.link();
  const gateways = async () => String(await link.command("CLIENT", "LIST")).match(/name=gateway /g)?.length;
  await until("only the other gateway is connected", async () => (await gateways()) === 1);
});
