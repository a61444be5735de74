import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../test/support/until.ts";
import { Connector } from "../src/index.ts";
import { FIRST_START } from "../src/limits.ts";
import { shared } from "./fixture.ts";
import { errorOf, PodStage, record, testAgent, untilState } from "./kit.ts";
import { setTime } from "./times.ts";
import type { WireProxy } from "./wire-proxy.ts";

const stage = shared(new PodStage("alice", "bob", "carol-hmac"));
let proxy: WireProxy;

beforeEach(async () => {
  proxy = await stage.proxy(stage.url);
});

afterEach(() => {
  jest.restoreAllMocks();
});

async function expectEnded(connector: Connector, code: string): Promise<void> {
  await untilState(connector, "closed");
  expect(connector.state).toMatchObject({ error: { code } });
  await expect(connector.send("agent://bob", {})).rejects.toMatchObject({ code });
  await expect(connector[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code });
}

/** The relay refuses each heartbeat with this code. A refused send has the connector send heartbeats at once. */
function refuseHeartbeats(alice: Connector, code: string): void {
  proxy.toRelay = ({ id, type }) => {
    const refusal = type === "agent.heartbeat" ? code : "not_registered";
    return void proxy.tell({
      frame: "error",
      code: refusal,
      message: "",
      hint: "",
      envelope_id: id,
      retry_after_ms: 1,
    });
  };
  alice.send("agent://bob", {}).catch(() => {});
}

test("A heartbeat refused for another reason is reported, and the connection stays", async () => {
  const alice = await stage.online("alice", proxy.url);
  const { errors, states } = record(alice);
  refuseHeartbeats(alice, "invalid_envelope");
  await until("two are reported", () => errors.length > 1);
  expect(new Set(errors.map(({ code }) => code))).toEqual(new Set(["invalid_envelope"]));
  expect(states).toEqual([]);
});

describe("A connector ends for good", () => {
  test("when another connection registers its agent; the other stays", async () => {
    const former = await stage.online("alice", stage.url);
    const heard = record(former);
    const later = await stage.online("alice", stage.url);
    await expectEnded(former, "superseded");
    expect(heard.notices).toMatchObject([{ kind: "superseded" }]);
    expect(await later.send("agent://bob", {})).toMatchObject({ duplicate: false });
  });

  test("when it is told so and the close gets lost: it does not take the agent back", async () => {
    proxy.losesCloses = true;
    const former = await stage.online("alice", proxy.url);
    const later = await stage.online("alice", stage.url);
    await expectEnded(former, "superseded");
    expect(await later.send("agent://bob", {})).toMatchObject({ duplicate: false });
  });

  test.each([
    ["not_registered", "superseded"],
    ["unknown_key", "key_revoked"],
    ["key_not_allowed", "key_revoked"],
  ])("when a heartbeat is refused as %s, whether or not a close follows: %s", async (refusal, code) => {
    const alice = await stage.online("alice", proxy.url);
    refuseHeartbeats(alice, refusal);
    await expectEnded(alice, code);
  });

  test.each([1003, 1007, 1008, 1009])("when the relay closes it for what it sent: %d", async (closeCode) => {
    const alice = await stage.online("alice", proxy.url);
    proxy.closeAgents(closeCode);
    await expectEnded(alice, "policy");
  });

  test("when its key is revoked, with what waits rejected", async () => {
    const bob = await stage.online("bob", proxy.url);
    proxy.toRelay = (envelope) => (envelope.type === "message.send" ? undefined : envelope);
    const waiting = errorOf(bob.send("agent://alice", {}));
    await stage.allow("alice", "carol-hmac");
    await expectEnded(bob, "key_revoked");
    expect(await waiting).toMatchObject({ code: "key_revoked", closeCode: 4403, outcome: "unknown" });
    await stage.allow("alice", "bob", "carol-hmac");
  });

  test("when the relay does not know its key, once it has had the time to learn it", async () => {
    setTime(FIRST_START, "unknownKeyMs", 0);
    const { key, agent } = testAgent("stranger");
    await using stranger = new Connector({ url: stage.url, takeOver: true, agent, key });
    await expect(stranger.start()).rejects.toMatchObject({ code: "unknown_key", retry: "fix" });
    await expectEnded(stranger, "unknown_key");
  });

  test("when its key is another's", async () => {
    const key = { ...testAgent("alice").key, keyId: stage.agent("alice").keyId };
    await using forger = new Connector({ url: stage.url, takeOver: true, agent: "agent://alice", key });
    await expect(forger.start()).rejects.toMatchObject({ code: "bad_signature" });
  });

  test("when the relay closes with 1008", async () => {
    const alice = await stage.online("alice", stage.url);
    const refused = Array.from({ length: 20 }, () => errorOf(alice.approve("ses_none", "agent://bob")));
    await expectEnded(alice, "policy");
    for (const error of await Promise.all(refused)) expect(["invalid_envelope", "policy"]).toContain(error.code);
  });

  test("when it is closed, with what waits rejected, and whether it went out", async () => {
    const alice = await stage.online("alice", proxy.url);
    proxy.toRelay = (envelope) => (envelope.type === "message.send" ? undefined : envelope);
    const sent = errorOf(alice.send("agent://bob", {}));
    const unsent = errorOf(stage.connector("bob", stage.url).send("agent://alice", {}));
    await until("it went out", () => proxy.sent.at(-1)?.type === "message.send");
    await stage.clear();
    expect(await sent).toMatchObject({ code: "closed", outcome: "unknown" });
    expect(await unsent).toMatchObject({ code: "closed", outcome: "refused" });
  });
});

describe("A connector that cannot work says so", () => {
  test.each([
    ["an Ed25519 seed of another length", { alg: "ed25519", privateKey: "AAAA" }],
    ["a seed that is not base64url", { alg: "ed25519", privateKey: `${"A".repeat(42)}=` }],
    ["a secret that is too short", { alg: "hmac-sha256", secret: "A".repeat(22) }],
  ] as const)("on start: %s", async (_, key) => {
    await using connector = new Connector({
      url: stage.url,
      takeOver: true,
      agent: "agent://alice",
      key: { keyId: "k", ...key },
    });
    await expect(connector.start()).rejects.toMatchObject({ code: "invalid_key" });
  });

  test("on start: a trusted key under which one signature fits any message", async () => {
    const { agent, key } = stage.agent("alice");
    const weak = { keyId: "k", alg: "ed25519", publicKey: `AQ${"A".repeat(41)}` } as const;
    await using connector = new Connector({
      url: stage.url,
      takeOver: true,
      agent,
      key,
      trust: { "agent://bob": [weak] },
    });
    await expect(connector.start()).rejects.toMatchObject({ code: "invalid_key" });
  });

  test.each([
    [{ url: "ftp://relay" }, "url"],
    [{ url: "nonsense" }, "url"],
    [{ agent: "agent://Alice" }, "agent"],
    [{ agent: "alice" }, "agent"],
    [{ maxDeliveryAgeMs: -1 }, "maxDeliveryAgeMs"],
    [{ maxDeliveryAgeMs: Number.NaN }, "maxDeliveryAgeMs"],
  ])("at once: %j", (wrong, what) => {
    const { agent, key } = stage.agent("alice");
    expect(() => new Connector({ url: stage.url, takeOver: true, agent, key, ...wrong })).toThrow(
      expect.objectContaining({ name: "TypeError", message: expect.stringContaining(what) }),
    );
  });
});

test("Keys of WebCrypto are taken as they are", async () => {
  const { agent, key, keyId } = stage.agent("carol-hmac");
  const bytes = Buffer.from((key as { secret: string }).secret, "base64url");
  const secret = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  await using carol = new Connector({
    url: stage.url,
    takeOver: true,
    agent,
    key: { keyId, alg: "hmac-sha256", secret },
  });
  await carol.start();
  expect(carol.state.status).toBe("online");
});
