import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { TestIssuer } from "../../../test/support/issuer.ts";
import type { Pod } from "../../../test/support/relay.ts";
import { until } from "../../../test/support/until.ts";
import { Connector } from "../../src/index.ts";
import { FIRST_START } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { errorOf, next, record, testAgent } from "../kit.ts";
import { setTime, waitForLookUps } from "../times.ts";
import { ACME, acme, GLOBEX, IssuerStage, type Party, party } from "./parties.ts";

const stage = shared(new IssuerStage(3));

beforeEach(() => waitForLookUps());
afterEach(() => {
  jest.restoreAllMocks();
});

describe("An agent whose key stands in no file", () => {
  test("registers at three pods in turn, and is who it says to whoever pinned its issuer", async () => {
    const [ann, bob, cleo] = [
      await party("agent://acme.ann"),
      await party("agent://globex.bob"),
      await party("agent://globex.cleo"),
    ];
    const pinning = await stage.join(bob, stage.url, { trust: { issuers: [ACME] } });
    const believing = await stage.join(cleo, (stage.pods[1] as Pod).url);
    expect(stage.pods).toHaveLength(3);
    for (const { url } of stage.pods) {
      const sender = await stage.join(ann, url);
      for (const to of [bob.agent, cleo.agent]) {
        expect(await sender.send(to, { at: url })).toMatchObject({ delivery: { status: "online" } });
      }
      const delivery = { from: ann.agent, payload: { at: url }, issuer: "acme" };
      expect(await next(pinning)).toMatchObject({ ...delivery, verified: "agent" });
      expect(await next(believing)).toMatchObject({ ...delivery, verified: "relay_issuer" });
      await pinning.send(ann.agent, {});
      expect(await next(sender)).toMatchObject({ from: bob.agent, verified: "relay_issuer", issuer: "globex" });
      await sender.close();
    }
  });

  test("is who it says to a newcomer, too, when Redis came back empty, before it registers again", async () => {
    const ann = await stage.join(await party("agent://acme.ann"), stage.url);
    await stage.relay.view().client.flushall();
    const bob = await stage.join(await party("agent://globex.bob"), (stage.pods[1] as Pod).url);
    await ann.send(bob.agent, {});
    expect(await next(bob)).toMatchObject({ from: ann.agent, verified: "relay_issuer", issuer: "acme" });
  });

  test("is not verified enough where only the relay names its issuer", async () => {
    const ann = await stage.join(await party("agent://acme.ann"), stage.url);
    const strict = { requireVerified: true, trust: { issuers: [GLOBEX] } };
    const bob = await stage.join(await party("agent://globex.bob"), stage.url, strict);
    const { errors } = record(bob);
    await ann.send(bob.agent, {});
    await until("it is dropped", () => errors.length > 0);
    expect(errors).toMatchObject([{ code: "unverified_delivery" }]);
  });

  test("is not looked up where no pinned issuer may hold it, and nobody else counts", async () => {
    const lookedUp: string[] = [];
    const truth = stage.front.lookUp;
    stage.front.lookUp = async (path) => {
      lookedUp.push(path);
      return await truth(path);
    };
    const [ann, cleo] = [
      await stage.join(await party("agent://acme.ann"), stage.url),
      await stage.join(await party("agent://globex.cleo"), stage.url),
    ];
    const strict = { requireVerified: true, trust: { issuers: [GLOBEX] } };
    const bob = await stage.join(await party("agent://globex.bob"), stage.front.url, strict);
    await ann.send(bob.agent, {});
    await cleo.send(bob.agent, {});
    expect(await next(bob)).toMatchObject({ from: cleo.agent, verified: "agent" });
    await until("ann's is dropped", () => bob.dropped.get("unverified_delivery") === 1);
    expect(lookedUp).toEqual([expect.stringContaining("globex.cleo")]);
  });

  test("is believed under the keys alone that were pinned for it", async () => {
    const ann = await stage.join(await party("agent://acme.ann"), stage.url);
    const keys = { [ann.agent]: [testAgent("ann").trusted] };
    const bob = await stage.join(await party("agent://globex.bob"), stage.url, { trust: { keys, issuers: [ACME] } });
    await ann.send(bob.agent, {});
    expect((await next(bob)).verified).toBe("unverified");
  });

  test("signs under the id that the relay may look its credential up by", async () => {
    const ann = await stage.join(await party("agent://acme.ann"), stage.url);
    const bob = await stage.join(await party("agent://globex.bob"), stage.url);
    await ann.send(bob.agent, {});
    expect((await next(bob)).envelope.key_id).toMatch(/^jkt-[\w-]{43}$/);
  });
});

describe("A credential is refused as invalid_credential before anything is sent:", () => {
  const connector = ({ agent, key }: Party, credential: string | (() => Promise<string>)) =>
    new Connector({ url: stage.url, agent, key, credential });
  test.each([
    ["of another key", async () => (await party("agent://acme.ann")).token()],
    ["of another agent", async ({ token }: Party) => token({ sub: "agent://acme.eve" })],
    ["that is none", async () => "a.b.c"],
  ])("%s", async (_, token) => {
    const person = await party("agent://acme.ann");
    const ann = connector(person, await token(person));
    expect(await errorOf(ann.start())).toMatchObject({ code: "invalid_credential" });
  });

  test("that its callback fails to give", async () => {
    const cause = new Error("no file");
    const ann = connector(await party("agent://acme.ann"), () => Promise.reject(cause));
    expect(await errorOf(ann.start())).toMatchObject({ code: "invalid_credential", cause });
  });

  test("and by the relay, with its reason", async () => {
    setTime(FIRST_START, "unknownKeyMs", 0);
    const { agent, key, token } = await party("agent://acme.ann", new TestIssuer("initech"));
    await using ann = new Connector({ url: stage.url, agent, key, credential: await token() });
    const error = await errorOf(ann.start());
    expect(error).toMatchObject({ code: "invalid_credential", retry: "fix" });
    expect(error.message).toMatch(/^unknown_issuer:/);
  });
});

test("A key without an id needs a credential, at once", () => {
  const key = { alg: "ed25519", privateKey: "A".repeat(43) } as const;
  expect(() => new Connector({ url: stage.url, agent: "agent://acme.ann", key })).toThrow(TypeError);
});

test("A private key that cannot be read is told from another's by what it signs", async () => {
  const [ann, eve] = [await party("agent://acme.ann"), await party("agent://acme.ann")];
  const jwk = { kty: "OKP", crv: "Ed25519", d: (ann.key as { privateKey: string }).privateKey };
  const { cnf } = JSON.parse(Buffer.from((await ann.token()).split(".")[1] as string, "base64url").toString());
  const privateKey = await crypto.subtle.importKey("jwk", { ...jwk, x: cnf.jwk.x }, "Ed25519", false, ["sign"]);
  const key = { alg: "ed25519", privateKey } as const;
  await stage.join({ ...ann, key }, stage.url);
  await expect(stage.join({ ...eve, key }, stage.url)).rejects.toMatchObject({ code: "invalid_credential" });
});

test("What is pinned must be usable", async () => {
  const trust = { issuers: [{ ...acme.record(["agent://acme.*"]), agents: [] } as never] };
  const ann = stage.join(await party("agent://acme.ann"), stage.url, { trust });
  await expect(ann).rejects.toMatchObject({ code: "invalid_issuer" });
});
