import { createHash, createPrivateKey, sign } from "node:crypto";
import { describe, expect, test } from "@jest/globals";
import { SelfTestGuide, SelfTestPass } from "relay-protocol/contract/responses.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import type { JsonObject } from "relay-protocol/wire/envelope.ts";
import { KEY_PREFIX } from "relay-window/redis/keys.ts";
import { AGENT, issued, newKeys } from "../../../shared/protocol/test/signing/issuing.ts";
import { until } from "../../../test/support/until.ts";
import { codeOf, post, useGateway, useGatewayKit } from "./kit.ts";

const kit = useGatewayKit();
const gateway = useGateway(kit);

const get = (path: string) => fetch(gateway.url + path);

describe("the self-test", () => {
  const selfTest = (body: unknown) => post(`${gateway.url}/api/self-test`, body);
  const seed = () => Buffer.from(kit.agentKey.privateKey, "base64url");
  const signed = (changes: object = {}) => {
    const unsigned = {
      id: "env-1",
      type: "message.send",
      from: "agent://alice",
      to: "agent://bob",
      payload: { message: "hi" },
      ts: Date.now(),
      key_id: "alice-1",
      ...changes,
    };
    const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed()]);
    const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
    return { ...unsigned, sig: sign(null, Buffer.from(canonicalText(unsigned)), key).toString("base64url") };
  };

  test("passes what the websocket would take, as often as it is asked", async () => {
    const envelope = signed();
    for (let n = 0; n < 2; n += 1) {
      const answer = await selfTest(envelope);
      expect(SelfTestPass.parse(await answer.json())).toMatchObject({ stage: "pass", type: "message.send" });
    }
    await selfTest({ ...envelope, sig: "A".repeat(86) });
    await until("passes are counted", async () => ((await kit.snapshot()).traffic.get("self_test_passed") ?? 0) >= 2);
    expect((await kit.snapshot()).traffic.get("self_test_passed")).toBe(2);
  });

  test("refuses with the websocket's own codes, and tells a clock that is off the time", async () => {
    const far = signed({ ts: Date.now() - 400_000 });
    const skew = (await (await selfTest(far)).json()) as { code: string; server_time: number };
    expect(skew.code).toBe("clock_skew");
    expect(Math.abs(skew.server_time - Date.now())).toBeLessThan(5000);
    const inSeconds = signed({ ts: Math.floor(Date.now() / 1000) });
    const explained = await post(`${gateway.url}/api/self-test?explain=1`, inSeconds);
    expect(await explained.json()).toMatchObject({ code: "clock_skew", hint: expect.stringContaining("seconds") });

    expect(await codeOf(selfTest({ ...signed(), payload: {} }))).toBe("400 bad_signature");
    expect(await codeOf(selfTest(signed({ key_id: "alice-2" })))).toBe("400 unknown_key");
    expect(await codeOf(selfTest(signed({ key_id: "gateway-1" })))).toBe("400 unknown_key");
    expect(await codeOf(selfTest(signed({ from: "agent://bob" })))).toBe("400 key_not_allowed");
    expect(await codeOf(selfTest({ ...signed(), more: 1 }))).toBe("400 invalid_envelope");
    expect(await codeOf(selfTest('{"__proto__":{}}'))).toBe("400 invalid_envelope");
    expect(await codeOf(selfTest("{"))).toBe("400 malformed_json");
    expect(await codeOf(selfTest(signed({ payload: { pad: "x".repeat(32_768) } })))).toBe("413 body_too_large");
  });

  describe("with ?explain=1", () => {
    const explained = async (body: unknown) => {
      const answer = await post(`${gateway.url}/api/self-test?explain=1`, body);
      return { status: answer.status, ...((await answer.json()) as { canonical?: string; canonical_sha256?: string }) };
    };

    test("tells the canonical text of any envelope whose shape is valid, whatever its clock, key or signature", async () => {
      const good = signed();
      expect(await explained(good)).toMatchObject({ status: 200, canonical: canonicalText(good) });
      const forged = { ...good, payload: { b: 1, a: 2 } };
      const refused = await explained(forged);
      expect(refused).toMatchObject({ status: 400, code: "bad_signature", canonical: canonicalText(forged) });
      expect(refused.canonical_sha256).toBe(
        createHash("sha256")
          .update(refused.canonical ?? "")
          .digest("hex"),
      );
      for (const changes of [{ ts: 0 }, { key_id: "nobody" }, { from: "agent://bob", to: "agent://alice" }]) {
        const envelope = signed(changes);
        expect(await explained(envelope)).toMatchObject({ status: 400, canonical: canonicalText(envelope) });
      }
    });

    test("tells nothing of what has no valid shape, and without it nothing of any", async () => {
      const itself = { type: "session.request", to: "agent://alice", payload: { purpose: "p" } };
      for (const body of [{ ...signed(), more: 1 }, signed(itself), "{", "1"]) {
        const answer = await explained(body);
        expect(answer.status).toBe(400);
        expect(answer).not.toHaveProperty("canonical");
      }
      const plain = await (await selfTest({ ...signed(), payload: {} })).json();
      expect(plain).toMatchObject({ code: "bad_signature", retry: "fix", canonical_sha256: expect.any(String) });
      expect(plain).not.toHaveProperty("canonical");
    });

    test("is asked for by 1 alone", async () => {
      expect(await codeOf(post(`${gateway.url}/api/self-test?explain=yes`, signed()))).toBe("400 invalid_request");
      expect(await codeOf(post(`${gateway.url}/api/self-test?other=1`, signed()))).toBe("400 invalid_request");
    });
  });

  test("accepts nothing: neither guard nor presence nor sessions know of it", async () => {
    const { link } = await kit.link();
    const before = ((await link.command("KEYS", `${KEY_PREFIX}*:seen:*`)) as string[]).length;
    const session = { type: "session.request", payload: { purpose: "p" } };
    expect((await selfTest(signed(session))).status).toBe(200);
    expect(((await link.command("KEYS", `${KEY_PREFIX}*:seen:*`)) as string[]).length).toBe(before);
  });

  test("explains itself", async () => {
    const guide = SelfTestGuide.parse(await (await get("/api/self-test")).json());
    expect(guide.canonical_signing_order).toHaveLength(8);
  });
});

const SECONDS = Math.floor(Date.now() / 1000);
const TERM = { iat: SECONDS - 10, exp: SECONDS + 3600 };
const KEY_ID = `jkt-${AGENT.thumbprint}`;

describe("a self-test of a credential", () => {
  async function register(payload: JsonObject, keyId = KEY_ID) {
    const from = "agent://acme.bob";
    const envelope = { id: "env-1", type: "agent.register", from, payload, ts: Date.now(), key_id: keyId };
    const sig = sign(null, Buffer.from(canonicalText(envelope)), AGENT.privateKey).toString("base64url");
    return post(`${gateway.url}/api/self-test`, { ...envelope, sig });
  }

  /** A message under the key of the credential, with a credential beside it. */
  async function message(token: string, changes: object = {}) {
    const addresses = { from: "agent://acme.bob", to: "agent://alice" };
    const terms = { payload: {}, ts: Date.now(), key_id: KEY_ID, ...changes };
    const envelope = { id: "env-1", type: "message.send", ...addresses, ...terms };
    const sig = sign(null, Buffer.from(canonicalText(envelope)), AGENT.privateKey).toString("base64url");
    return post(`${gateway.url}/api/self-test?credential=${token}`, { ...envelope, sig });
  }

  test("takes any envelope of the key whose credential is shown beside it", async () => {
    const answer = await message(await issued(TERM));
    expect([answer.status, await answer.json()]).toMatchObject([200, { stage: "pass", type: "message.send" }]);
    const forThis = await message(await issued({ ...TERM, aud: ["relay.example"] }));
    expect(forThis.status).toBe(200);
  });

  test.each([
    ["no token", "malformed", async () => "a.b.c"],
    ["one that is too long", "malformed", () => issued({ ...TERM, pad: "x".repeat(2048) })],
    ["a forged one", "signature", () => issued(TERM, {}, newKeys())],
    ["one that has ended", "expired", () => issued({ ...TERM, exp: SECONDS - 1 })],
    ["one for another relay", "wrong_relay", () => issued({ ...TERM, aud: ["evil.example"] })],
  ])("refuses it beside %s", async (_, reason, make) => {
    const answer = await message(await make());
    const { code, detail } = (await answer.json()) as { code: string; detail: string };
    expect([answer.status, code, detail.split(":")[0]]).toEqual([400, "invalid_credential", reason]);
  });

  test("looks at it when size and clock of the envelope are right, and its key is to be known by it", async () => {
    const none = "a.b.c";
    expect(await codeOf(message(none, { ts: Date.now() - 3_600_000 }))).toBe("400 clock_skew");
    expect(await codeOf(message(none, { payload: { text: "x".repeat(40_000) } }))).toBe("413 body_too_large");
    expect(await codeOf(message(none, { key_id: "unlisted" }))).toBe("400 unknown_key");
    expect(await codeOf(message(none))).toBe("400 invalid_credential");
  });

  test("vouches by it for no other agent and no other key", async () => {
    expect(await codeOf(message(await issued({ ...TERM, sub: "agent://acme.eve" })))).toBe("400 key_not_allowed");
    const other = await issued({ ...TERM, cnf: { jwk: newKeys().publicKey.export({ format: "jwk" }) } });
    expect(await codeOf(message(other))).toBe("400 unknown_key");
  });

  test("says in its template what payload.relay of a register must be, and a refusal says it too", async () => {
    const guide = (await (await fetch(`${gateway.url}/api/self-test`)).json()) as {
      request_template: { payload: JsonObject };
    };
    const { relay } = guide.request_template.payload;
    const credential = await issued(TERM);
    expect((await register({ credential, relay: relay as string })).status).toBe(200);
    const refused = (await (await register({ credential, relay: "evil.example" })).json()) as { hint: string };
    expect(refused.hint).toContain(relay);
  });

  test("has in its template both members that bind a register to its relay and its connection", async () => {
    const guide = (await (await fetch(`${gateway.url}/api/self-test`)).json()) as object;
    expect(guide).toMatchObject({
      request_template: { payload: { relay: "relay.example", connection_id: "that of hello" } },
    });
  });

  test("passes a register with a credential for this relay, whichever connection it is for", async () => {
    const credential = await issued(TERM);
    const answer = await register({ credential, relay: "relay.example", connection_id: "con_1" });
    expect([answer.status, await answer.json()]).toMatchObject([200, { stage: "pass" }]);
  });

  test("refuses one for another relay, a forged one, and the key without it", async () => {
    const credential = await issued(TERM);
    const forged = await issued(TERM, {}, newKeys());
    const answers = [{ credential, relay: "evil.example" }, { credential: forged, relay: "relay.example" }, {}];
    expect(await Promise.all(answers.map((payload) => codeOf(register(payload))))).toEqual([
      "400 invalid_credential",
      "400 invalid_credential",
      "400 unknown_key",
    ]);
  });
});
