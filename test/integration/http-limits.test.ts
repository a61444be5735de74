import { describe, expect, test } from "@jest/globals";
import { GUIDE_SURFACES } from "protocol/contract/surfaces/guides.ts";
import { generateApiKey } from "protocol/signing/api-key.ts";
import type { LimitName } from "runtime/metrics/catalogue.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { CLIENT, from, NEIGHBOURS, OTHER_CLIENT, ProxiedServices } from "./proxied-services.ts";

const relay = useRelay("alice", "bob");
const services = new ProxiedServices(relay);
const view = given(() => relay.view());

describe("Guides", () => {
  const ops = given(async () => {
    // Of the three services a gateway opens the window.
    await services.start("startGateway");
    return await services.start("startOpsReporting", { RELAY_PUBLIC_REQUESTS_PER_MINUTE: "5" });
  });
  const paths = Object.values(GUIDE_SURFACES).map(({ path }) => path);
  const ask = (path: string, address: string) => fetch(ops.url + path, { headers: from(address) });
  const ofTarget = (n: number) => `${paths[n % paths.length]}?target_agent_id=agent://guess-${n}`;

  test("that read a target are refused beyond an address's five a minute, whichever they are, and counted", async () => {
    for (let n = 0; n < 5; n += 1) expect((await ask(ofTarget(n), CLIENT)).status).toBe(200);
    for (const n of paths.keys()) {
      const refused = await ask(ofTarget(n), CLIENT);
      expect([refused.status, await refused.json()]).toMatchObject([429, { code: "rate_limited" }]);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect(await ops.reached("target_reads")).toBe(paths.length);
    expect((await ask(ofTarget(0), OTHER_CLIENT)).status).toBe(200);
  });

  test("of the whole window are one shared read, and have no limit", async () => {
    for (let n = 0; n < 20; n += 1) expect((await ask(paths[n % paths.length] as string, CLIENT)).status).toBe(200);
  });
});

describe("Requests to the gateway", () => {
  const message = { from: "agent://alice", to: "agent://bob", message: "hello" };
  const gateway = given(() => services.start("startGateway", { RELAY_PUBLIC_REQUESTS_PER_MINUTE: "5" }));

  const post = (path: string, body: object, headers: Record<string, string>) =>
    fetch(gateway.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const read = (path: string, address: string) => fetch(gateway.url + path, { headers: from(address) });
  const send = (key: object) => post("/v1/messages/send", message, { ...from(CLIENT), ...key });

  test.each<[LimitName, number, (n: number) => Promise<Response>]>([
    ["api_key_requests", 30, () => send(relay.credentials("alice"))],
    ["failed_keys", 60, () => send({ "x-api-key": generateApiKey() })],
    ["feedback", 5, () => post("/api/public/feedback", {}, from(CLIENT))],
    ["self_test", 5, () => post("/api/self-test", {}, from(CLIENT))],
    ["check_online", 5, (n) => read(`/api/onboarding/check-online?agent_id=agent://guess-${n}`, CLIENT)],
    ["session_lookups", 5, (n) => read(`/sessions/ses_${String(n).padStart(26, "0")}`, CLIENT)],
    ["credential_lookups", 5, (n) => read(`/v1/agents/guess-${n}/credential`, CLIENT)],
    ["check_online", 5, (n) => read("/api/onboarding/check-online?agent_id=agent://bob", NEIGHBOURS[n % 2] as string)],
  ])("that %s bounds are refused after %d with 429 and Retry-After, and counted", async (limit, most, ask) => {
    const before = await gateway.reached(limit);
    for (let n = 0; n < most; n += 1) expect((await ask(n)).status).not.toBe(429);
    const refused = await ask(most);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ code: "rate_limited", retry_after_ms: expect.any(Number) });
    expect((await gateway.reached(limit)) - before).toBe(1);
  });
});

test("No client address is in Redis, in a log line or in a metric after all that, nor a hash that could be guessed", async () => {
  expect(await view.names("relay:{*}:limit:address*")).not.toEqual([]);
  expect(relay.log.length).toBeGreaterThan(0);
  expect(await services.addressesKept()).toEqual([]);
});
