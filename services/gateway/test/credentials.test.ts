import { beforeAll, describe, expect, test } from "@jest/globals";
import { AgentCredential, SigningManifest } from "relay-protocol/contract/responses.ts";
import { AGENT, ISSUER_WITH_TERMS, issued, newKeys, RECORD } from "../../../shared/protocol/test/signing/issuing.ts";
import { codeOf, useGateway, useGatewayKit } from "./kit.ts";

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
