import { createHash, sign } from "node:crypto";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { type Frame, signed } from "../../../test/support/agent.ts";
import { TestIssuer } from "../../../test/support/issuer.ts";
import { until } from "../../../test/support/until.ts";
import type { Connector, ConnectorOptions } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { errorOf, next, record } from "../kit.ts";
import { holdWaits, LONG_MS, waitForLookUps } from "../times.ts";
import { type Keys, newKeys } from "./kit.ts";
import { ACME, acme, GLOBEX, IssuerStage, party, secondsFromNow } from "./parties.ts";

const stage = shared(new IssuerStage());
const ANN = "agent://acme.ann";
const HOUR_MS = 3_600_000;
let ann: Connector;
let bob: Connector;
let heard: ReturnType<typeof record>;
let eve: Keys;

beforeEach(async () => {
  waitForLookUps();
  ann = await stage.join(await party(ANN), stage.url);
  eve = await newKeys();
});

afterEach(() => {
  jest.restoreAllMocks();
});

async function bobJoins(options: Partial<ConnectorOptions> = {}): Promise<void> {
  const strict = { trust: { issuers: [ACME] }, requireVerified: true };
  bob = await stage.join(await party("agent://globex.bob"), stage.front.url, { ...strict, ...options });
  heard = record(bob);
}

/** The relay hands bob an envelope of its own in place of what ann sends. */
function forge(keyId: string, fields: object = {}): void {
  const key = { keyId, sign: (text: string) => sign(null, Buffer.from(text), eve.privateKey).toString("base64url") };
  const content = { type: "message.send", from: ANN, to: "agent://globex.bob", payload: { forged: true }, ...fields };
  stage.front.toAgent = (frame) => (frame.frame === "deliver" ? { ...frame, envelope: signed(key, content) } : frame);
}

async function expectDropped(code: string): Promise<void> {
  await ann.send("agent://globex.bob", {});
  await until("it is dropped", () => heard.errors.length > 0);
  expect(heard.errors).toMatchObject([{ code }]);
  expect(heard.deliveries).toEqual([]);
}

async function manifestSays(change: (manifest: Frame) => object): Promise<void> {
  const truth = JSON.parse(await stage.front.manifest());
  stage.front.manifest = async () => JSON.stringify({ ...truth, ...change(truth) });
}

const credentialFor = async (issuer: TestIssuer, claims: object = {}) => {
  const cnf = { jwk: { kty: "OKP", crv: "Ed25519", x: eve.x } };
  return (await issuer.agent(ANN, { cnf, ...claims })).credential;
};
const lookUpsSay = (credential: string) => {
  stage.front.lookUp = async () => JSON.stringify({ ok: true, credential });
};
const eveKeyId = () => `jkt-${eve.thumbprint}`;

describe("With pinned issuers, a relay that lies in its manifest gets nothing believed:", () => {
  test.each([
    ["the pinned issuer has another key there", new TestIssuer("acme"), ["agent://acme.*"]],
    ["another issuer has the agent there", new TestIssuer("evil"), [ANN]],
    ["another issuer has all agents there", new TestIssuer("evil"), ["*"]],
  ])("%s", async (_, issuer, agents) => {
    await manifestSays(() => ({ issuers: [issuer.record(agents)] }));
    lookUpsSay(await credentialFor(issuer));
    await bobJoins();
    forge(eveKeyId());
    await expectDropped("unverified_delivery");
    await bob.close();

    await bobJoins({ requireVerified: false });
    forge(eveKeyId());
    await ann.send("agent://globex.bob", {});
    expect((await next(bob)).verified).toBe("unverified");
  });

  test("and of an agent that nobody pinned it is believed as much as the relay", async () => {
    const issuer = new TestIssuer("evil");
    await manifestSays(() => ({ issuers: [issuer.record([ANN])] }));
    lookUpsSay(await credentialFor(issuer));
    await bobJoins({ trust: { issuers: [GLOBEX] }, requireVerified: false });
    forge(eveKeyId());
    await ann.send("agent://globex.bob", {});
    expect(await next(bob)).toMatchObject({ verified: "relay_issuer", issuer: "evil" });
  });
});

describe("With a pinned issuer", () => {
  test.each([
    ["of the asked agent", [ANN]],
    ["of all others", ["*"]],
  ])("%s, a relay cannot make up the reply to a question", async (_, agents) => {
    await bobJoins({ trust: { issuers: [{ ...ACME, agents }] }, requireVerified: false });
    stage.front.toAgent = (frame) => {
      const { type, id, task_id } = frame.frame === "ack" ? (stage.front.sent.at(-1) as Frame) : {};
      if (type === "message.send") forgeReply(task_id ?? id);
      return frame;
    };
    const timeIsOver = holdWaits();
    const asked = errorOf(bob.ask(ANN, { n: 1 }, { timeoutMs: LONG_MS }));
    await until("the forged reply came", () => heard.deliveries.length > 0);
    timeIsOver();
    expect(await asked).toMatchObject({ code: "timeout" });
    expect(heard.deliveries).toMatchObject([{ verified: "unverified", payload: { forged: true } }]);
  });

  /** The relay hands bob a reply that ann never wrote. */
  function forgeReply(task_id: string): void {
    const content = { type: "message.reply", from: ANN, to: "agent://globex.bob", task_id, payload: { forged: true } };
    const envelope = { ...content, id: "forged", ts: Date.now(), key_id: "none", sig: "none" };
    stage.front.tell({ frame: "deliver", envelope });
  }
});

describe("With pinned issuers, a relay that lies in its look-ups gets nothing believed:", () => {
  test("a credential of another key", async () => {
    lookUpsSay((await acme.agent(ANN)).credential);
    await bobJoins();
    forge(eveKeyId());
    await expectDropped("unverified_delivery");
  });

  test("a credential of another agent", async () => {
    lookUpsSay(await credentialFor(acme, { sub: "agent://acme.eve" }));
    await bobJoins();
    forge(eveKeyId());
    await expectDropped("unverified_delivery");
  });

  test("a credential that another key signed", async () => {
    const [[head, body], [, , signature]] = [
      (await credentialFor(acme)).split("."),
      (await credentialFor(acme, { nonce: 1 })).split("."),
    ] as [string[], string[]];
    lookUpsSay(`${head}.${body}.${signature}`);
    await bobJoins();
    forge(eveKeyId());
    await expectDropped("unverified_delivery");
  });

  test("a credential for other relays", async () => {
    lookUpsSay(await credentialFor(acme, { aud: "elsewhere.example" }));
    await bobJoins();
    forge(eveKeyId());
    await expectDropped("unverified_delivery");
  });

  test("none at all", async () => {
    stage.front.lookUp = async () => undefined;
    await bobJoins();
    await expectDropped("unverified_delivery");
  });
});

describe("A relay that lies in its gateway keys gets nothing believed", () => {
  const listed = (keyId: string) => ({ gateway_keys: [{ key_id: keyId, alg: "ed25519", public_key: eve.x }] });
  const idOf = (publicKey: string) =>
    `gateway-${createHash("sha256").update(publicKey).digest("base64url").slice(0, 22)}`;

  test("where gateways are not trusted", async () => {
    await manifestSays(() => listed(idOf(eve.x)));
    await bobJoins();
    forge(idOf(eve.x));
    await expectDropped("unverified_delivery");
  });

  test("where one is: its id names its key", async () => {
    const [gateway] = JSON.parse(await stage.front.manifest()).gateway_keys;
    await manifestSays(() => listed(gateway.key_id));
    await bobJoins({ trust: { gateways: [gateway.key_id] } });
    forge(gateway.key_id);
    await expectDropped("unverified_delivery");
  });
});

describe("A relay that lies about the time gets nothing believed", () => {
  const ended = { iat: secondsFromNow(-7200), exp: secondsFromNow(-3000) };
  /** The relay tells a time of its own with an error. */
  async function tellTime(offMs: number): Promise<void> {
    const error = { frame: "error", code: "unavailable" };
    stage.front.toAgent = (frame) =>
      frame.frame === "deliver" ? { ...error, server_time: Date.now() + offMs } : frame;
    await ann.send("agent://globex.bob", {});
    await until("the time was told", () => heard.errors.splice(0).length > 0);
  }

  test("that would make a credential hold again, with what was signed in its term", async () => {
    lookUpsSay(await credentialFor(acme, ended));
    await bobJoins();
    await tellTime(-HOUR_MS);
    forge(eveKeyId(), { ts: Date.now() - HOUR_MS });
    await expectDropped("clock_untrusted");
  });

  test("nor does it seal to what its time makes hold again", async () => {
    await bobJoins();
    await tellTime(-HOUR_MS);
    expect(await errorOf(bob.send(ANN, {}, { seal: true }))).toMatchObject({ code: "clock_untrusted" });
  });

  test("of now, under a credential that has ended", async () => {
    lookUpsSay(await credentialFor(acme, ended));
    await bobJoins();
    forge(eveKeyId());
    await expectDropped("unverified_delivery");
  });

  test("of its term, long ago", async () => {
    lookUpsSay(await credentialFor(acme, ended));
    await bobJoins();
    forge(eveKeyId(), { ts: Date.now() - HOUR_MS });
    await expectDropped("stale_delivery");
  });
});
