import { sign } from "node:crypto";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { AgentCredential, SigningManifest } from "relay-protocol/contract/responses.ts";
import { canonicalText } from "relay-protocol/signing/canonical.ts";
import type { JsonObject } from "relay-protocol/wire/envelope.ts";
import { AGENT, ISSUER_WITH_TERMS, issued, newKeys, RECORD } from "../../../shared/protocol/test/signing/issuing.ts";
import { codeOf, post, useGateway, useGatewayKit } from "./kit.ts";

const kit = useGatewayKit();
const gateway = useGateway(kit);

const SECONDS = Math.floor(Date.now() / 1000);
const TERM = { iat: SECONDS - 10, exp: SECONDS + 3600 };
const KEY_ID = `jkt-${AGENT.thumbprint}`;

const lookUp = (name: string, query = "") => fetch(`${gateway.url}/v1/agents/${name}/credential${query}`);
const bring = async (agent: string, token: string, keyId = KEY_ID) =>
  await kit.online(agent, { expiresAt: TERM.exp * 1000, presented: { keyId, token } });

describe("the credential of an agent", () => {
  let token: string;
  beforeAll(async () => {
    token = await issued(TERM);
    await bring("agent://acme.bob", token);
  });

  test.each(["", `?key_id=${KEY_ID}`])("is given as it was registered with%s", async (query) => {
    const answer = await lookUp("acme.bob", query);
    expect([answer.status, AgentCredential.parse(await answer.json())]).toEqual([
      200,
      {
        ok: true,
        agent_id: "agent://acme.bob",
        key_id: KEY_ID,
        credential: token,
        issuer: "acme",
        expires_at_iso: new Date(TERM.exp * 1000).toISOString(),
      },
    ]);
  });

  test("is unknown alike of who has none, of who is unknown, and under another key", async () => {
    await kit.online("agent://alice");
    const answers = [lookUp("alice"), lookUp("nobody"), lookUp("acme.bob", "?key_id=jkt-other")];
    const bodies = await Promise.all(answers.map(async (answer) => await (await answer).text()));
    expect(new Set(bodies).size).toBe(1);
    expect(await codeOf(lookUp("nobody"))).toBe("404 unknown_agent");
    // Whoever goes by retry does not ask for ever.
    expect(JSON.parse(bodies[0] as string)).toMatchObject({ retry: "fix" });
    expect((await lookUp("nobody")).headers.has("retry-after")).toBe(false);
  });

  test.each(["ACME", "a%20b", "-a"])("is asked for by the name of an agent: %s is none", async (name) => {
    const answer = await lookUp(name);
    expect([answer.status, await answer.json()]).toMatchObject([400, { errors: [{ field: "name" }] }]);
  });

  test.each([
    ["that has ended", "acme.old", () => issued({ ...TERM, sub: "agent://acme.old", exp: SECONDS - 1 })],
    ["of an issuer that is gone", "gone", () => issued({ ...TERM, iss: "gone", sub: "agent://gone" }, {}, newKeys())],
    ["for an agent that is not its issuer's", "eve", () => issued({ ...TERM, sub: "agent://eve" })],
  ])("is not given when it is one %s", async (_, name, make) => {
    await bring(`agent://${name}`, await make());
    expect(await codeOf(lookUp(name))).toBe("404 unknown_agent");
  });
});

test("the manifest names the issuers as the keys file has them, with the terms of their keys and what they revoked", async () => {
  const answer = await fetch(`${gateway.url}/.well-known/signing-manifest.json`);
  expect(SigningManifest.parse(await answer.json()).issuers).toEqual([RECORD, ISSUER_WITH_TERMS]);
});

describe("a self-test", () => {
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
