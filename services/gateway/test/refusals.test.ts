import { describe, expect, test } from "@jest/globals";
import { generateApiKey } from "relay-protocol/signing/api-key.ts";
import { codeOf, type Headers, post, useGateway, useGatewayKit } from "./kit.ts";

const kit = useGatewayKit();
const gateway = useGateway(kit);

const ENDPOINTS = [
  ["/v1/messages/send", { from: "agent://alice", to: "agent://bob", message: "hi" }],
  ["/v1/sessions/request", { from: "agent://alice", to: "agent://bob", purpose: "to talk" }],
] as const;

describe.each(ENDPOINTS)("POST %s", (path, good) => {
  const ask = (body: unknown, headers: Headers = {}) => post(gateway.url + path, body, headers);
  const withKey = (body: unknown, headers: Headers = {}) => ask(body, { "x-api-key": kit.freshKey(), ...headers });

  test.each([
    ["missing", {}, "missing_api_key"],
    ["empty", { "x-api-key": "" }, "missing_api_key"],
    ["malformed", { "x-api-key": "nonsense" }, "invalid_api_key"],
    ["unknown", { "x-api-key": generateApiKey() }, "invalid_api_key"],
  ])("refuses a key that is %s before it looks at the body", async (_, key: Headers, code) => {
    const response = await ask("{ broken", key);
    expect(response.headers.get("www-authenticate")).toContain("ApiKey");
    expect(await response.clone().json()).toMatchObject({ code, retry: "fix" });
    expect(await codeOf(response)).toBe(`401 ${code}`);
  });

  test("takes the key from the header alone", async () => {
    const key = kit.freshKey();
    expect(await codeOf(ask({ ...good, api_key: key }))).toBe("401 missing_api_key");
    expect(await codeOf(post(`${gateway.url}${path}?x-api-key=${key}`, good))).toBe("401 missing_api_key");
  });

  test.each([{ authorization: "Bearer rk_secret" }, { "api-key": "rk_secret" }])(
    "tells who sent it in another header where it goes, and echoes nothing of it (%#)",
    async (headers: Headers) => {
      const [name = ""] = Object.keys(headers);
      const { code, hint } = (await (await ask(good, headers)).json()) as { code: string; hint: string };
      expect([code, hint]).toEqual(["missing_api_key", expect.stringContaining(`x-api-key, not into ${name}`)]);
      expect(hint).not.toContain("rk_secret");
    },
  );

  test.each(["api_key", "x-api-key", "key"])("refuses a body field %s, and echoes nothing of it", async (field) => {
    const response = await withKey({ ...good, [field]: "rk_secret" });
    const text = await response.clone().text();
    expect(text).not.toContain("rk_secret");
    expect(await codeOf(response)).toBe("400 invalid_request");
  });

  test("refuses bodies that are not JSON of the right size and type", async () => {
    expect(await codeOf(withKey(good, { "content-type": "text/plain" }))).toBe("415 unsupported_media_type");
    expect(await codeOf(withKey("{ broken"))).toBe("400 malformed_json");
    expect(await codeOf(withKey({ ...good, pad: "x".repeat(32_768) }))).toBe("413 body_too_large");
    expect(await codeOf(withKey({}))).toBe("400 invalid_request");
  });

  test("refuses what is no agent id, and a sender of another's only after the shape", async () => {
    expect(await codeOf(withKey({ ...good, to: "agent://Bob" }))).toBe("400 invalid_request");
    expect(await codeOf(withKey({ ...good, from: "agent://mallory", to: "nobody" }))).toBe("400 invalid_request");
    expect(await codeOf(withKey({ ...good, from: "agent://mallory" }))).toBe("401 api_key_not_allowed_for_sender");
  });

  test.each(["two words", "x".repeat(129), "é"])("refuses the Idempotency-Key %j", async (key) => {
    const headers = { "idempotency-key": Buffer.from(key).toString("latin1") };
    expect(await codeOf(withKey(good, headers))).toBe("400 invalid_request");
  });

  test("counts broken requests against the rate, and refuses by rate before shape", async () => {
    const headers = { "x-api-key": kit.freshKey() };
    for (let n = 0; n < 30; n += 1) expect((await ask("{ broken", headers)).status).toBe(400);
    expect(await codeOf(ask("{ broken", headers))).toBe("429 rate_limited");
    expect(await codeOf(ask({ ...good, from: "agent://mallory" }, headers))).toBe("429 rate_limited");
  });
});

describe("a session", () => {
  test("is between two agents: none is requested of its requester", async () => {
    const body = { from: "agent://alice", to: "agent://alice", purpose: "to talk" };
    const answer = await post(`${gateway.url}/v1/sessions/request`, body, { "x-api-key": kit.freshKey() });
    expect(await answer.clone().json()).toMatchObject({ retry: "fix", errors: [{ field: "to" }] });
    expect(await codeOf(answer)).toBe("400 invalid_request");
  });
});

describe("an envelope that would be too large", () => {
  const message = "€".repeat(10_880);

  test("is refused although its body is not", async () => {
    const body = { from: "agent://alice", to: "agent://bob", message };
    const answer = post(`${gateway.url}/v1/messages/send`, body, { "x-api-key": kit.freshKey() });
    expect(await codeOf(answer)).toBe("400 frame_too_large");
  });
});

describe("the type of a simple send", () => {
  const send = (type: string) =>
    post(
      `${gateway.url}/v1/messages/send`,
      { from: "agent://alice", to: "agent://bob", message: "hi", type },
      { "x-api-key": kit.freshKey() },
    );

  test("is message.send or message.<word>", async () => {
    expect(await (await send("message.offer")).json()).toMatchObject({ accepted: true, type: "message.offer" });
    const refused = await send("session.request");
    expect(JSON.stringify(await refused.clone().json())).toContain("POST /v1/sessions/request");
    expect(await codeOf(refused)).toBe("400 invalid_request");
  });
});
