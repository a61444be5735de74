import { beforeEach, describe, expect, test } from "@jest/globals";
import type { Connector } from "../../connector/src/index.ts";
import { ACME, GLOBEX, IssuerStage, type Party, party } from "../../connector/test/credentials/parties.ts";
import { shared } from "../../connector/test/fixture.ts";
import { next } from "../../connector/test/kit.ts";
import type { Frame } from "../support/agent.ts";
import { Verification } from "./verify-kit.ts";

const verification = new Verification();
const stage = shared(new IssuerStage());
const trust = { issuers: [ACME, GLOBEX] };

let ann: Connector;
let bob: Connector;
let bobsKeys: Party;
/** As the relay wrote them to bob. */
let frames: Frame[];

beforeEach(async () => {
  frames = [];
  bobsKeys = await party("agent://globex.bob");
  ann = await stage.join(await party("agent://acme.ann"), stage.url, { trust });
  bob = await stage.join(bobsKeys, stage.front.url, { trust });
  stage.front.toAgent = (frame) => {
    if (frame.frame === "deliver") frames.push(frame);
    return frame;
  };
});

async function json(path: string): Promise<Frame> {
  return (await (await fetch(`${stage.url}${path}`)).json()) as Frame;
}

/** The options that name both issuers, by the records that the relay has of them. */
async function issuers(): Promise<string[]> {
  return ["--issuer", await verification.file(ACME), "--issuer", await verification.file(GLOBEX)];
}

/** The options that name the issuers and a credential, as the relay gives it to whoever looks it up. */
async function vouched(name: string): Promise<string[]> {
  const { credential } = await json(`/v1/agents/${name}/credential`);
  return [...(await issuers()), "--credential", await verification.file(credential)];
}

describe("verify.py takes what the relay and the connector made:", () => {
  test("a credential that the relay is asked for", async () => {
    const { credential, key_id } = await json("/v1/agents/acme.ann/credential");
    const host = new URL(stage.url).host;
    const checked = await verification.run("credential", credential, ...(await issuers()), "--relay", host);
    expect(checked).toMatchObject({ code: 0, ok: true, agent: ann.agent, key_id, issuer: "acme" });
  });

  test("a frame that was delivered", async () => {
    const payload = { message: "hello", "\u{1f602}": [1e21, -0.5, null, { "\u00e9": "\u2028" }] };
    await ann.send(bob.agent, payload);
    await next(bob);
    const checked = await verification.run("envelope", frames[0] as Frame, ...(await vouched("acme.ann")));
    expect(checked).toMatchObject({ code: 0, verified: "agent", issuer: "acme", from: ann.agent, payload });
  });

  test("a frame that was delivered sealed", async () => {
    const payload = { message: "for Bob alone", "\u{1f602}": 1e-7 };
    await ann.send(bob.agent, payload, { seal: true });
    await next(bob);
    expect(JSON.stringify(frames)).not.toContain("for Bob alone");
    const [sealing] = bobsKeys.sealingKeys;
    const key = ["--key", await verification.file({ sealing_key: sealing?.privateKey })];
    const checked = await verification.run("open", frames[0] as Frame, ...(await vouched("acme.ann")), ...key);
    expect(checked).toMatchObject({ code: 0, verified: "agent", issuer: "acme", sealed: true, payload });
  });

  test("the receipt of a session, from either party", async () => {
    const { sessionId } = await ann.requestSession(bob.agent, { purpose: "to talk" });
    await next(bob);
    await bob.approve(sessionId, ann.agent);
    await next(ann);
    for (const receipt of [ann.receipt(sessionId), bob.receipt(sessionId)]) {
      expect(await verification.run("receipt", receipt, ...(await issuers()))).toMatchObject({
        code: 0,
        decision: "session.approve",
        from: ann.agent,
        by: bob.agent,
        issuers: ["acme", "globex"],
        revoked_by_now: [],
      });
    }
  });

  test("the vectors of the signing manifest", async () => {
    const manifest = await json("/.well-known/signing-manifest.json");
    const { credential, issuer, claims, key_id } = manifest.credential_test_vector;
    const at = new Date(claims.iat * 1000).toISOString();
    const options = ["--issuer", await verification.file(issuer), "--at", at];
    const expected = { code: 0, agent: claims.sub, key_id, issuer: claims.iss };
    expect(await verification.run("credential", credential, ...options)).toMatchObject(expected);

    const { envelope, recipient_key, plaintext } = manifest.sealed_payload_test_vector;
    const path = JSON.stringify(await verification.file(envelope));
    const sealed = `verify.parse(open(${path}, "rb").read())`;
    const opened = `verify.open_sealed(${sealed}, ${JSON.stringify(recipient_key.private_key)})`;
    expect(await verification.evaluate(`print(verify.jcs(${opened}), end="")`)).toBe(plaintext);
  });
});
