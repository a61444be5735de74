import { beforeAll, describe, expect, test } from "@jest/globals";
import { CheckOnline } from "relay-protocol/contract/presence.ts";
import { OnlineAgents, Ready } from "relay-protocol/contract/responses.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { PRESENCE_LIMITS, WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { presenceOf } from "relay-window/presence/presence.ts";
import { presenceOfAgent } from "../src/api/presence.ts";
import { codeOf, useGateway, useGatewayKit } from "./kit.ts";

const NOW = 1_800_000_000_000;
const kit = useGatewayKit();
const gateway = useGateway(kit);

async function checkOnline(agent: string): Promise<CheckOnline> {
  const answer = await fetch(`${gateway.url}/api/onboarding/check-online?agent_id=${agent}`);
  return CheckOnline.parse(await answer.json());
}

test("check-online says since when a connection has held the agent", async () => {
  const before = Date.now();
  await kit.online("agent://fresh");
  const { status, stable, online_since_iso } = await checkOnline("agent://fresh");
  expect({ status, stable }).toEqual({ status: "online", stable: false });
  expect(Date.parse(online_since_iso as string)).toBeGreaterThanOrEqual(before - 1);
  expect(Date.parse(online_since_iso as string)).toBeLessThanOrEqual(Date.now() + 1);
});

test("the advice to hold counts down, and ends when the agent was held for 90 s: it is stable", () => {
  const seconds = (heldMs: number) => {
    const presence = presenceOf(NOW, NOW, NOW - heldMs, PRESENCE_LIMITS.offlineAfterMs);
    const { stable, next_action } = presenceOfAgent("agent://bob", presence, { now: NOW, windowStartedAt: 0 });
    return [stable, Number(/(\d+) s\b/.exec(next_action)?.[1] ?? 0)];
  };
  expect(seconds(30_000)).toEqual([false, 60]);
  expect(seconds(85_000)).toEqual([false, 5]);
  expect(seconds(90_000)).toEqual([true, 0]);
  expect(seconds(9_000_000)).toEqual([true, 0]);
});

test.each([
  [WINDOW_LIMITS.youngMs - 1, true],
  [WINDOW_LIMITS.youngMs, false],
])("of an agent that was not seen in a window of %i ms, when that began is said: %j", (ageMs, isSaid) => {
  const windowStartedAt = NOW - ageMs;
  const presence = presenceOf(NOW, null, null, PRESENCE_LIMITS.offlineAfterMs);
  const { next_action } = presenceOfAgent("agent://bob", presence, { now: NOW, windowStartedAt });
  expect(next_action.includes(new Date(windowStartedAt).toISOString().slice(0, 19))).toBe(isSaid);
});

test("who asks for an agent that is online is told to request, stable or not: no guide waits for it either", async () => {
  for (const heldMs of [0, 30_000, 90_000]) {
    await kit.held("agent://bob", { heldMs });
    expect((await checkOnline("agent://bob")).next_action).toContain(`POST ${SURFACES.requestSession.path}`);
  }
});

test.each([
  ["stale", { heldMs: 200_000, silentMs: 60_000 }],
  ["offline", { heldMs: 900_000, silentMs: 600_000 }],
  ["not_seen", undefined],
] as const)("of a %s agent tells who asks what to do, and its owner in recovery", async (status, held) => {
  const agent = `agent://${status}`;
  if (held !== undefined) await kit.held(agent, held);
  const { next_action, recovery, ...presence } = await checkOnline(agent);
  expect(presence).toMatchObject({ status, stable: false, online_since_iso: null });
  expect(next_action).not.toMatch(/agent\.(register|heartbeat)/);
  expect(recovery.addressed_to).toBe("the owner of this agent");
  expect(recovery.quickstart.join()).toMatch(/agent\.register/);
});

test("An agent that is online and congested cannot be delivered to, and each side is told what to do about it", async () => {
  await kit.held("agent://slow", { heldMs: 100_000, isCongested: true });
  await kit.held("agent://fast", { heldMs: 100_000 });
  const [slow, fast] = [await checkOnline("agent://slow"), await checkOnline("agent://fast")];
  expect(slow).toMatchObject({ status: "online", severity: "ok", stable: true, can_deliver_realtime: false });
  expect([slow.reason, fast.reason, fast.can_deliver_realtime]).toEqual(["congested", undefined, true]);
  expect(slow.next_action).not.toBe(fast.next_action);
  expect(slow.caveat).not.toBe(fast.caveat);
  expect(slow.recovery.quickstart[0]).not.toBe(fast.recovery.quickstart[0]);
});

describe("presence", () => {
  const kit = useGatewayKit();
  const gateway = useGateway(kit);

  beforeAll(() => kit.online("agent://bob"));

  const get = (path: string) => fetch(gateway.url + path);

  test("of an agent that is online, and of one that was never seen", async () => {
    const online = CheckOnline.parse(await (await get("/api/onboarding/check-online?agent_id=agent://bob")).json());
    expect(online).toMatchObject({ status: "online", can_deliver_realtime: true, severity: "ok" });
    expect(online.recovery.liveness_contract).toEqual({
      heartbeat_interval_ms: 15_000,
      heartbeat_max_ms: 30_000,
      stale_after_ms: 45_000,
      stability_hold_ms: 90_000,
    });

    const unseen = CheckOnline.parse(await (await get("/api/onboarding/check-online?agent_id=agent://nobody")).json());
    expect(unseen).toMatchObject({ status: "not_seen", can_deliver_realtime: false, stale_ms: null, severity: null });
    expect(unseen.next_action).not.toBe(online.next_action);
  });

  test("asks for an agent id, and for nothing else", async () => {
    for (const query of [
      "",
      "?agent_id=bob",
      "?agent_id=agent://bob&more=1",
      "?agent_id=agent://a&agent_id=agent://b",
    ]) {
      expect(await codeOf(get(`/api/onboarding/check-online${query}`))).toBe("400 invalid_request");
    }
  });

  test("of all is counts, never ids", async () => {
    const text = await (await get("/api/onboarding/online-agents")).text();
    expect(OnlineAgents.parse(JSON.parse(text))).toMatchObject({
      complete: true,
      online_agents: 1,
      stale_agents: 0,
      by_severity: { ok: 1 },
    });
    expect(text).not.toContain("agent://");
  });

  test("is part of readiness", async () => {
    const response = await get("/ready");
    expect(response.status).toBe(200);
    expect(Ready.parse(await response.json())).toMatchObject({ ready: true, online_agents: 1, stale_agents: 0 });
  });
});
