import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  BLOCKER_CATEGORIES,
  CATEGORIES,
  categoryOf,
  SENTIMENTS,
  sentimentOf,
} from "protocol/contract/feedback-labels.ts";
import { surfaceLabelOf } from "protocol/contract/feedback-surfaces.ts";
import { GATEWAY_KEY_LIMITS } from "protocol/contract/limits.ts";
import type { Surface } from "protocol/contract/surface.ts";
import { SURFACES, type SurfaceId } from "protocol/contract/surfaces.ts";
import { anonymousId } from "runtime/anonymous-id.ts";
import { openAnotherWindow } from "../../../test/support/another-window.ts";
import { addFeedback } from "../src/feedback.ts";
import { announceGatewayKey, readGatewayKeys } from "../src/gateway-keys.ts";
import { controlKeys } from "../src/redis/keys.ts";
import { Bench, ClockedLink, type Pod } from "./kit.ts";

describe("an anonymous id", () => {
  const TRAITS = ["203.0.113.7", "Agent/1.0 (test)"];

  test("shows none of the traits it was made of, in any spelling", () => {
    const id = anonymousId("salt", "visitor", ...TRAITS);
    expect(id).toMatch(/^[A-Za-z0-9_-]{22}$/);
    const spellings = [
      id,
      Buffer.from(id, "base64url").toString("latin1"),
      Buffer.from(id, "base64url").toString("hex"),
    ];
    for (const trait of TRAITS) {
      for (const spelling of spellings) expect(spelling).not.toContain(trait);
    }
  });

  test("is the same for the same visitor, and another for another salt, purpose or trait", () => {
    const id = anonymousId("salt", "visitor", ...TRAITS);
    expect(anonymousId("salt", "visitor", ...TRAITS)).toBe(id);
    const others = [
      anonymousId("salt-2", "visitor", ...TRAITS),
      anonymousId("salt", "address", ...TRAITS),
      anonymousId("salt", "visitor", "203.0.113.8", TRAITS[1] as string),
      anonymousId("salt", "visitor", TRAITS[0] as string),
    ];
    expect(new Set([id, ...others]).size).toBe(5);
  });
});

describe("a feedback label", () => {
  test.each([...SENTIMENTS])("keeps the sentiment %s", (label) => {
    expect(sentimentOf(label)).toBe(label);
  });

  test.each([...CATEGORIES])("keeps the category %s", (label) => {
    expect(categoryOf(label)).toBe(label);
  });

  test("holds the blockers that stand between connector and session", () => {
    for (const blocker of BLOCKER_CATEGORIES) expect(CATEGORIES).toContain(blocker);
  });

  test("is found whatever its case, blanks and hyphens", () => {
    expect(categoryOf("  Stale-Presence ")).toBe("stale_presence");
    expect(sentimentOf("HELPFUL")).toBe("helpful");
    expect(surfaceLabelOf("Web Socket")).toBe("other");
    expect(surfaceLabelOf(" WebSocket ")).toBe("websocket");
  });

  test.each([
    [
      "smoke_check",
      ["smoke", "Smoke Test", "smoke-check", "smoketest", "smoke_tests", "post-deploy smoke", "smoke run"],
    ],
    [
      "deploy_check",
      ["deploy", "Deploy Test", "deployment-check", "deploycheck", "post_deploy", "postdeploy check", "deploy_probe"],
    ],
  ])("of a check is %s in every usual spelling", (category, spellings) => {
    for (const spelling of spellings) expect([spelling, categoryOf(spelling)]).toEqual([spelling, category]);
  });

  test.each(["smoked", "deployed_docs_wrong", "no smoke", "deploy the docs"])("is no check for %j", (text) => {
    expect(categoryOf(text)).toBe("other");
  });

  test("of a surface is the operation id, by id, or by path or alias that it has", () => {
    for (const [id, { path, aliases }] of Object.entries(SURFACES)) {
      expect(surfaceLabelOf(id)).toBe(id);
      for (const name of [path, ...aliases]) {
        const labelled: Surface = SURFACES[surfaceLabelOf(name) as SurfaceId];
        expect([labelled.path, ...labelled.aliases]).toContain(name);
      }
    }
  });

  test.each([undefined, "", "constructor", "__proto__", "rk_0123", "a".repeat(100_000), "\u0000"])(
    "is other for %j",
    (text) => {
      expect([sentimentOf(text), categoryOf(text), surfaceLabelOf(text)]).toEqual(["other", "other", "other"]);
    },
  );
});

describe("in Redis", () => {
  const bench = new Bench();
  let pod: Pod;

  beforeEach(async () => {
    await bench.open();
    pod = await bench.pod();
  });
  afterEach(() => bench.clear());
  afterAll(() => bench.redis.stop());

  const feedback = async () => bench.client.hgetall((await bench.wholeKeys()).feedback);

  test("feedback is counted by its labels, and of its text only that there was one", async () => {
    await addFeedback(pod.link, pod.window, {
      surface: "/api/onboarding/check-online",
      sentiment: "blocked",
      category: "stale_presence",
      message: "the raw text",
    });
    await addFeedback(pod.link, pod.window, { message: "" });
    expect(await feedback()).toEqual({
      total: "2",
      "surface:checkOnline": "1",
      "surface:other": "1",
      "sentiment:blocked": "1",
      "sentiment:other": "1",
      "category:stale_presence": "1",
      "category:other": "1",
      message_provided: "1",
    });
  });

  test("feedback takes bounded room, whatever is posted", async () => {
    const texts = Array.from({ length: 200 }, (_, n) => `made up ${n}`);
    for (const text of texts) {
      await addFeedback(pod.link, pod.window, { surface: text, sentiment: text, category: text, message: text });
    }
    const all = ["total", "surface:other", "sentiment:other", "category:other", "message_provided"];
    expect(await feedback()).toEqual(Object.fromEntries(all.map((name) => [name, "200"])));
  });

  test("feedback goes into the window that is open", async () => {
    const id = await openAnotherWindow(bench.client);
    await addFeedback(pod.link, pod.window, {});
    expect(pod.window.current.id).toBe(id);
    expect((await feedback()).total).toBe("1");
  });

  test("a gateway's key is listed for 15 minutes after the gateway was last seen, and forgotten then", async () => {
    const link = await ClockedLink.of(bench);
    const [one, two] = [
      { keyId: "gateway-1", publicKey: "A".repeat(43) },
      { keyId: "gateway-2", publicKey: "B".repeat(43) },
    ];
    await announceGatewayKey(link, one);
    link.at += GATEWAY_KEY_LIMITS.listedForMs;
    expect(await readGatewayKeys(link)).toEqual([one]);
    link.at += 1;
    expect(await readGatewayKeys(link)).toEqual([]);
    await announceGatewayKey(link, two);
    expect(await readGatewayKeys(link)).toEqual([two]);
    expect(await bench.client.hkeys(controlKeys.gatewayKeys)).toEqual(["gateway-2"]);
    link.at += 1000;
    await announceGatewayKey(link, one);
    expect((await readGatewayKeys(link)).map(({ keyId }) => keyId).sort()).toEqual(["gateway-1", "gateway-2"]);
  });
});
