import { describe, expect, jest, test } from "@jest/globals";
import type { Frame } from "../../test/support/agent.ts";
import { HttpClient } from "../../test/support/http.ts";
import { until } from "../../test/support/until.ts";
import type { HttpClient as RelayHttp } from "../src/http-client.ts";
import { RelayManifest } from "../src/relay-manifest.ts";
import { next, testAgent } from "./kit.ts";
import { useVerificationScene } from "./verification-scene.ts";

const scene = useVerificationScene();
const { stage, bobTrusts, deliver, expectDropped, trustAlice } = scene;

describe("A delivery from an agent whose key is given", () => {
  test.each([
    ["payload", () => ({ payload: { n: 2 } })],
    ["type", () => ({ type: "message.other" })],
    ["task", () => ({ task_id: "other" })],
    ["time", ({ ts }: Frame) => ({ ts: ts + 1 })],
    ["id", () => ({ id: "other" })],
    ["signature", ({ sig }: Frame) => ({ sig: `${sig.slice(1)}A` })],
    ["signature's alphabet", ({ sig }: Frame) => ({ sig: `${sig}=` })],
    ["signature's algorithm", () => ({ sig: "A".repeat(43) })],
  ])("is dropped and reported when its %s was changed on the way", async (_, change) => {
    await bobTrusts({ trust: trustAlice() });
    deliver(change);
    await expectDropped("forged_delivery");
  });

  test("signed with a secret is checked too", async () => {
    const { agent, trusted } = stage.agent("alice.two-hmac");
    const two = await stage.online("alice.two-hmac", stage.url);
    await bobTrusts({ trust: { [agent]: [trusted] } });
    await two.send("agent://bob", {});
    expect((await next(scene.bob)).verified).toBe("agent");
    deliver(() => ({ payload: { forged: true } }));
    await two.send("agent://bob", {});
    await until("it is dropped", () => scene.heard.errors.length > 0);
  });

  test("has no member that was not signed", async () => {
    await bobTrusts({ trust: trustAlice() });
    deliver(() => ({ admin: true }));
    await scene.alice.send("agent://bob", {});
    const { envelope, verified } = await next(scene.bob);
    expect(verified).toBe("agent");
    expect(envelope).not.toHaveProperty("admin");
  });

  test("counts for that agent only", async () => {
    const trusted = stage.agent("alice").trusted;
    await bobTrusts({ trust: { "agent://mallory": [trusted] } });
    await scene.alice.send("agent://bob", {});
    expect((await next(scene.bob)).verified).toBe("unverified");
  });
});

describe("A delivery under a key that is not known", () => {
  test("is marked", async () => {
    await bobTrusts({ trust: { "agent://alice": [testAgent("alice-older").trusted] } });
    await scene.alice.send("agent://bob", {});
    expect(await next(scene.bob)).toMatchObject({ verified: "unverified", from: "agent://alice" });
  });

  test("is dropped where only verified ones are wanted", async () => {
    await bobTrusts({ requireVerified: true });
    await expectDropped("unverified_delivery");
  });
});

describe("A delivery that a gateway made", () => {
  const http = new HttpClient();
  const send = async () => {
    const body = { from: "agent://alice", to: "agent://bob", message: "hi" };
    const answer = await http.post(`${stage.url}/v1/messages/send`, body, { "x-api-key": stage.agent("alice").apiKey });
    expect(answer).toMatchObject({ status: 202, body: { target_delivery: { can_deliver_realtime: true } } });
  };

  test("is verified by the key in the relay's signing manifest", async () => {
    await bobTrusts({}, stage.url);
    await send();
    expect(await next(scene.bob)).toMatchObject({
      verified: "gateway",
      payload: { message: "hi" },
      from: "agent://alice",
    });
  });

  test("is dropped where only verified ones are wanted, unless its key is named", async () => {
    await bobTrusts({ requireVerified: true }, stage.url);
    await send();
    await until("it is dropped", () => scene.heard.errors.length > 0);
    await scene.bob.close();
    const { gateway_keys } = (await http.get(`${stage.url}/.well-known/signing-manifest.json`)).body;
    const gateways: string[] = gateway_keys.map(({ key_id }: Frame) => key_id);
    const [{ code, message, hint } = {}] = scene.heard.errors as { code?: string; message?: string; hint?: string }[];
    expect({ code, hint }).toEqual({ code: "unverified_delivery", hint: expect.stringContaining("trust.gateways") });
    expect(message).toContain("agent://alice");
    expect(gateways.filter((gateway) => message?.includes(gateway))).toHaveLength(1);
    await bobTrusts({ requireVerified: true, trust: { gateways } }, stage.url);
    await send();
    expect(await next(scene.bob)).toMatchObject({ verified: "gateway" });
  });

  test("and then changed is dropped", async () => {
    await bobTrusts({}, stage.url);
    await send();
    const { envelope } = await next(scene.bob);
    await scene.bob.close();
    scene.proxy.manifest = () =>
      fetch(`${stage.url}/.well-known/signing-manifest.json`).then((answer) => answer.text());
    await bobTrusts({});
    deliver(() => ({ ...envelope, payload: { message: "changed" } }));
    await scene.alice.send("agent://bob", {});
    await until("it is dropped", () => scene.heard.errors.length > 0);
    expect(scene.heard.errors).toMatchObject([{ code: "forged_delivery" }]);
  });

  test("under a key that no manifest lists is unverified, and asks for the manifest but once in a while", async () => {
    let asked = 0;
    scene.proxy.manifest = async () => {
      asked += 1;
      return "no JSON";
    };
    await bobTrusts({});
    // The start looked up whether the agent is online elsewhere.
    asked = 0;
    deliver(() => ({ key_id: "gateway-unheard-of" }));
    for (let n = 0; n < 3; n += 1) await scene.alice.send("agent://bob", {});
    await until("they are delivered", () => scene.heard.deliveries.length === 3);
    expect(scene.heard.deliveries.map(({ verified }) => verified)).toEqual(Array(3).fill("unverified"));
    expect(asked).toBe(1);
  });

  test("is judged by the keys of a minute ago at most, since the relay may have revoked one", async () => {
    const listed = (await http.get(`${stage.url}/.well-known/signing-manifest.json`)).body;
    const [{ key_id }] = listed.gateway_keys;
    let answer: { status: number; body: Frame } = { status: 200, body: listed };
    const manifest = new RelayManifest({
      ask: async () => ({ status: answer.status, text: JSON.stringify(answer.body) }),
    } as unknown as RelayHttp);
    let now = 1_000_000;
    const clock = jest.spyOn(performance, "now").mockImplementation(() => now);
    const isKnownAfter = async (ms: number) => {
      now += ms;
      return (await manifest.gatewayKey(key_id)) !== undefined;
    };
    expect(await isKnownAfter(0)).toBe(true);
    answer = { status: 503, body: { ok: false, code: "unavailable" } };
    expect(await isKnownAfter(60_000)).toBe(true);
    answer = { status: 200, body: { ...listed, gateway_keys: [] } };
    expect(await isKnownAfter(59_000)).toBe(true);
    expect(await isKnownAfter(1000)).toBe(false);
    clock.mockRestore();
  });
});
