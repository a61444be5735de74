import { expect, test } from "@jest/globals";
import { generateApiKey } from "relay-protocol/signing/api-key.ts";
import { windowKeysIn } from "../../../test/support/window-view.ts";
import { codeOf, post, type Running, useGateway, useGatewayKit } from "./kit.ts";

const OVERRIDES = { RELAY_TRUSTED_PROXY_HOPS: "1", RELAY_PUBLIC_REQUESTS_PER_MINUTE: "5" };
const kit = useGatewayKit();
const one = useGateway(kit, OVERRIDES);
const two = useGateway(kit, OVERRIDES);

const message = { from: "agent://alice", to: "agent://bob", message: "hi" };
const send = (at: Running, apiKey: string, headers: Record<string, string> = {}) =>
  post(`${at.url}/v1/messages/send`, message, { "x-api-key": apiKey, ...headers });

test("a key has thirty requests a minute on each endpoint, over all gateways together", async () => {
  const apiKey = kit.freshKey();
  for (let n = 0; n < 30; n += 1) {
    const answer = await send(n % 2 === 0 ? one : two, apiKey);
    expect(answer.status).toBe(202);
    expect(answer.headers.get("ratelimit-policy")).toBe('"default";q=30;w=60');
    expect(answer.headers.get("ratelimit")).toMatch(new RegExp(`^"default";r=${29 - n};t=(60|5\\d)$`));
  }

  for (const at of [one, two]) {
    const refused = await send(at, apiKey);
    const body = (await refused.clone().json()) as { retry_after_ms: number; retry_after_seconds: number };
    expect(await codeOf(refused)).toBe("429 rate_limited");
    expect(refused.headers.get("ratelimit")).toMatch(/^"default";r=0;t=\d+$/);
    expect(refused.headers.get("retry-after")).toBe(String(body.retry_after_seconds));
    expect(body.retry_after_seconds).toBe(Math.ceil(body.retry_after_ms / 1000));
    expect(body.retry_after_ms).toBeLessThanOrEqual(60_000);
  }

  const session = { from: "agent://alice", to: "agent://bob", purpose: "to talk" };
  expect((await post(`${one.url}/v1/sessions/request`, session, { "x-api-key": apiKey })).status).toBe(202);
  expect((await send(one, kit.freshKey())).status).toBe(202);
});

test("the policy goes out with every answer, a refused key's included", async () => {
  for (const answer of [await send(one, ""), await send(one, "rk_wrong")]) {
    expect([answer.status, answer.headers.get("ratelimit-policy")]).toEqual([401, '"default";q=30;w=60']);
  }
});

test("a key whose 200 sessions pend is refused one more, which opens none and spoils no Idempotency-Key", async () => {
  const { link } = await kit.link();
  const [apiKey, other] = [kit.freshKey(), kit.freshKey()];
  const session = { from: "agent://alice", to: "agent://bob", purpose: "to talk" };
  const once = { "idempotency-key": "once" };
  const request = (key: string, headers: Record<string, string> = {}) =>
    post(`${one.url}/v1/sessions/request`, session, { "x-api-key": key, ...headers });
  const principals = async () =>
    (await link.command("KEYS", (await windowKeysIn(link.client)).partition(0).principal("*"))) as string[];
  const before = await principals();
  expect((await request(apiKey)).status).toBe(202);
  const room = (await principals()).find((key) => !before.includes(key)) as string;
  for (let n = 1; n < 200; n += 1) await link.command("ZADD", room, Date.now() + 60_000, `other-${n}`);

  const refused = await request(apiKey, once);
  const body = await refused.clone().json();
  expect(await codeOf(refused)).toBe("429 rate_limited");
  expect(refused.headers.get("retry-after")).toBe("60");
  expect(body).toMatchObject({
    detail: expect.stringMatching(/max_pending_sessions_per_key.*200/),
    hint: expect.stringContaining("60000 ms"),
    retry_after_ms: 60_000,
  });
  expect((await request(other)).status).toBe(202);
  await link.command("ZREM", room, "other-1");
  expect((await request(apiKey, once)).status).toBe(202);
});

test("failed keys are limited by address, and a valid key is never refused for its address", async () => {
  const from = { "x-forwarded-for": "203.0.113.7" };
  for (let n = 0; n < 60; n += 1)
    expect((await send(n % 2 === 0 ? one : two, generateApiKey(), from)).status).toBe(401);
  expect(await codeOf(send(two, generateApiKey(), from))).toBe("429 rate_limited");
  expect((await send(two, kit.freshKey(), from)).status).toBe(202);
  expect(await codeOf(send(two, generateApiKey(), { "x-forwarded-for": "203.0.113.8" }))).toBe("401 invalid_api_key");
});

test("a request without a key is told so, however many keys failed: it tried none", async () => {
  const from = { "x-forwarded-for": "203.0.113.11" };
  for (let n = 0; n < 61; n += 1) await send(one, generateApiKey(), from);
  expect(await codeOf(send(one, generateApiKey(), from))).toBe("429 rate_limited");
  expect(await codeOf(send(one, "", from))).toBe("401 missing_api_key");
});

test.each([
  [
    "gateway_requests_per_minute",
    30,
    async () => {
      const key = kit.freshKey();
      for (let n = 0; n < 30; n += 1) await send(one, key);
      return await send(one, key);
    },
  ],
  [
    "failed_keys_per_minute",
    60,
    async () => {
      const from = { "x-forwarded-for": "203.0.113.12" };
      for (let n = 0; n < 60; n += 1) await send(one, generateApiKey(), from);
      return await send(one, generateApiKey(), from);
    },
  ],
  [
    "public_requests_per_minute",
    5,
    async () => {
      const headers = { "x-forwarded-for": "203.0.113.13" };
      for (let n = 0; n < 5; n += 1) await post(`${one.url}/api/self-test`, {}, headers);
      return await post(`${one.url}/api/self-test`, {}, headers);
    },
  ],
] as const)(
  "a 429 names the limit that was reached, %s, its number, and how long to wait",
  async (name, most, beyond) => {
    const { detail, hint, retry_after_ms } = (await (await beyond()).json()) as Record<string, unknown>;
    expect(detail).toMatch(new RegExp(`${name}\\b.*: ${most}\\.`));
    expect(hint).toContain(`${retry_after_ms} ms`);
    const manifest = (await (await fetch(`${one.url}/.well-known/relay-manifest.json`)).json()) as { limits: object };
    expect(manifest.limits).toMatchObject({ [name]: most });
  },
);

test("an address that the client made up does not get it around a limit", async () => {
  const ask = (n: number) =>
    fetch(`${one.url}/api/onboarding/check-online?agent_id=agent://bob`, {
      headers: { "x-forwarded-for": `198.51.100.${n}, 203.0.113.9` },
    });
  for (let n = 0; n < 5; n += 1) expect((await ask(n)).status).toBe(200);
  expect(await codeOf(ask(5))).toBe("429 rate_limited");
});

test("each public surface has a limit of its own for each address", async () => {
  const headers = { "x-forwarded-for": "203.0.113.10" };
  const asks: (() => Promise<Response>)[] = [
    () => fetch(`${one.url}/api/onboarding/check-online?agent_id=agent://bob`, { headers }),
    () => fetch(`${one.url}/sessions/ses_none`, { headers }),
    () => post(`${one.url}/api/public/feedback`, {}, headers),
    () => post(`${one.url}/api/self-test`, {}, headers),
  ];
  for (const ask of asks) {
    for (let n = 0; n < 5; n += 1) expect((await ask()).status).not.toBe(429);
    expect(await codeOf(ask())).toBe("429 rate_limited");
  }
  expect((await post(`${one.url}/api/feedback`, {}, headers)).status).toBe(429);
  expect((await fetch(`${one.url}/api/onboarding/online-agents`, { headers })).status).toBe(200);
});

test("zero means no limit", async () => {
  const open = await kit.gateway({ RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0" });
  const answers = await Promise.all(Array.from({ length: 50 }, () => post(`${open.url}/api/public/feedback`, {})));
  expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(202));
});

test("of an address nothing but a salted hash is kept, and that for a minute", async () => {
  const { link } = await kit.link();
  const names = (await link.command("KEYS", "relay:*:limit:*")) as string[];
  expect(names.length).toBeGreaterThan(0);
  expect(names.join(" ")).not.toMatch(/\d+\.\d+\.\d+|::/);
  for (const name of names) expect(await link.command("TTL", name)).toBeLessThanOrEqual(60);
});
