import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { CONGESTED } from "relay-window/presence/presence.ts";
import { resetWindow } from "relay-window/window/reset.ts";
import type { AgentSocket } from "../support/agent.ts";
import { rowsBetween } from "../support/documents.ts";
import { HttpClient } from "../support/http.ts";
import { GuidedCaller, LiteralFollower } from "../support/literal-follower.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Callers who follow only the JSON of guides, against the three services behind one address. */

const GUIDES = Object.values(SURFACES)
  .filter(({ group }) => group === "guides")
  .map(({ path }) => path);
const protocol = await readFile(new URL("../../docs/protocol.md", import.meta.url), "utf8");
const ROWS = rowsBetween(protocol, "guides");
const MINUTE_MS = 60_000;

/** The target of one guide in one situation: each way has its own, for a way can leave a proof behind. */
const nameOf = (situation: string, guide: string) => `t${SITUATIONS.indexOf(situation)}-${GUIDES.indexOf(guide)}`;
const SITUATIONS = ROWS.map(([situation]) => situation as string);
const WITH_KEYS = SITUATIONS.slice(4).flatMap((situation) => GUIDES.map((guide) => nameOf(situation, guide)));

const relay = useRelay("walker", "bob", "alice", "carol", "dora", "erin", "fay", "gus", "hal", "ida", ...WITH_KEYS);
const http = new HttpClient();
const pod = given(() =>
  relay.startWhole({ RELAY_CONNECTIONS_PER_ADDRESS: "0", RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0" }),
);
const view = given(() => relay.view());
const keyOf = (name: string) => relay.keys.apiKeys.get(name) as string;

/** Brings a target into a situation; resolves with the query that its asker starts with. */
const MAKE: Readonly<Record<string, (target: string) => Promise<string>>> = {
  "nobody is online, the window was just reset included": async () => "",
  "never seen": async () => "",
  offline: (target) => seenAgo(target, 10 * MINUTE_MS),
  stale: (target) => seenAgo(target, MINUTE_MS),
  "online, but congested": async (target) => {
    await relay.online(pod, target);
    const routes = (await view.keysOf(target)).route;
    const record = await view.client.hget(routes, `agent://${target}`);
    await view.client.hset(routes, `agent://${target}`, `${record}${CONGESTED}`);
    return "";
  },
  "online, not held for 90 s": async (target) => {
    await relay.online(pod, target);
    return "";
  },
  "online and held": async (target) => {
    const socket = await relay.online(pod, target);
    await socket.ask(relay.envelope(target, "agent.heartbeat"));
    return "";
  },
  "fresh proof of another's": async (target) => {
    await relay.online(pod, target);
    await request("carol", target);
    return "";
  },
  "fresh proof of your own": async (target) => {
    await relay.online(pod, target);
    await request("alice", target);
    return "";
  },
  "rejected your session": async (target) => naming(target, await rejected("dora", target)),
  "rejected your session, which you do not name": async (target) => {
    await rejected("dora", target);
    return "";
  },
  "your session with it expired": async (target) => {
    await relay.online(pod, target);
    const session_id = await displaced("dora", target);
    // As if its hour had been over for another one.
    const key = (await view.keysOf(target)).session(session_id);
    const [status, delivery, createdAt, ...rest] = `${await view.client.get(key)}`.split(" ");
    const aged = [status, delivery, Number(createdAt) - 120 * MINUTE_MS, ...rest];
    await view.client.set(key, aged.join(" "), "KEEPTTL");
    return naming(target, session_id);
  },
  "newer sessions took the place of yours": async (target) => {
    await relay.online(pod, target);
    return naming(target, await displaced("fay", target));
  },
  "newer sessions took the place of yours, and you have one of them": async (target) => {
    await relay.online(pod, target);
    const session_id = await displaced("fay", target);
    await request("fay", target);
    return naming(target, session_id);
  },
  "your request pends": async (target) => {
    await relay.online(pod, target);
    return naming(target, await request("ida", target));
  },
  "your request did not reach it, and it is away": async (target) => {
    const session_id = await request("gus", target, false);
    await seenAgo(target, MINUTE_MS);
    return naming(target, session_id);
  },
  "your request did not reach it, and it is online by now": async (target) => {
    const session_id = await request("gus", target, false);
    await relay.online(pod, target);
    return naming(target, session_id);
  },
  "your request did not reach it, but another's did": async (target) => naming(target, await unreached("gus", target)),
  "approved your session, whose request did not reach it, and another's did": async (target) => {
    const session_id = await unreached("hal", target);
    await (await relay.online(pod, target)).ask(approval(target, "hal", session_id));
    return naming(target, session_id);
  },
  "approved your session": async (target) => {
    const socket = await relay.online(pod, target);
    const session_id = await request("hal", target);
    await socket.ask(approval(target, "hal", session_id));
    return naming(target, session_id);
  },
  "you name a session that it does not have": async (target) => {
    await relay.online(pod, target);
    await request("carol", target);
    return naming(target, "ses_00abcdefghjkmnpqrstvwxyz01");
  },
  "you name another's session with it": async (target) => {
    await relay.online(pod, target);
    return `${naming(target, await request("carol", target))}&from=agent://erin`;
  },
};

/** A request whose session is as if a hundred newer ones had taken its place. */
async function displaced(from: string, target: string): Promise<string> {
  const session_id = await request(from, target);
  await view.client.del((await view.keysOf(target)).pending(`agent://${target}`));
  return session_id;
}

/** A request while the target was away, and another's once it was online. */
async function unreached(from: string, target: string): Promise<string> {
  const session_id = await request(from, target, false);
  await relay.online(pod, target);
  await request("ida", target);
  return session_id;
}

const approval = (target: string, to: string, session_id: string) =>
  relay.envelope(target, "session.approve", { to: `agent://${to}`, payload: { session_id } });

/** Whose session it is goes the way. One key may not send the requests of all ways in a minute. */
function askerOf(situation: string): string {
  if (situation.startsWith("newer sessions")) return "fay";
  if (situation === "your request pends") return "ida";
  if (situation.startsWith("approved your session")) return "hal";
  if (situation.startsWith("your request")) return "gus";
  if (/your session/.test(situation)) return "dora";
  return situation.startsWith("you name") ? "erin" : "alice";
}

const naming = (target: string, session_id: string) => `?target_agent_id=agent://${target}&session_id=${session_id}`;

async function rejected(from: string, target: string): Promise<string> {
  const socket = await relay.online(pod, target);
  const session_id = await request(from, target);
  await socket.ask(relay.envelope(target, "session.reject", { to: `agent://${from}`, payload: { session_id } }));
  return session_id;
}

async function seenAgo(target: string, ms: number): Promise<string> {
  await view.client.zadd((await view.keysOf(target)).presence, Date.now() - ms, `agent://${target}`);
  return "";
}

async function request(from: string, target: string, can_deliver_realtime = true): Promise<string> {
  const body = { from: `agent://${from}`, to: `agent://${target}`, purpose: "talk" };
  const answer = await http.post(pod.url + SURFACES.requestSession.path, body, relay.credentials(from));
  expect(answer.body).toMatchObject({ accepted: true, target_delivery: { can_deliver_realtime } });
  return answer.body.session_id;
}

describe("A caller that asks for an agent", () => {
  const GO = "go_fresh_relay_negotiation_proof_available";
  const NO_GO = "no_go_refresh_relay_proof_before_marketplace_handoff";
  const BOB = "agent://bob";
  const NAMED = `?from=agent://walker&target_agent_id=${BOB}`;
  const pathOf = (url: string) => decodeURIComponent(url.replace(pod.url, ""));
  const guideUrl = (query = `?target_agent_id=${BOB}`) => `${pod.url}/api/public/session-request-guide${query}`;
  const newCaller = () => new GuidedCaller({ agent: "agent://walker", apiKey: keyOf("walker") }, BOB);
  const gate = async () => (await http.get(`${pod.url}/api/public/marketplace-handoff-status`)).body;
  let bob: AgentSocket;
  afterAll(() => bob.close());

  test("guide, request, proof and gate lead to go", async () => {
    bob = await relay.online(pod, "bob");
    const nextStep = async () => (await gate()).allowed_next_step;
    await until("the gate sees bob", async () => (await nextStep()) === "request_session_with_online_target");
    expect((await gate()).status).toBe(NO_GO);
    const caller = newCaller();
    const { accepted, proof, gate: passed } = await caller.walk(guideUrl());
    expect(passed).toMatchObject({ status: GO, target_decision: "pending", next: { who: "target" } });
    expect(proof).toMatchObject({ requester: "agent://walker", target: BOB, target_status: "online" });
    expect((await bob.delivered(accepted.envelope_id)).session_id).toBe(accepted.session_id);
    expect(caller.calls.map(({ method, url, status }) => [method, pathOf(url), status])).toEqual([
      ["GET", "/api/public/session-request-guide?target_agent_id=agent://bob", 200],
      ["GET", "/api/public/session-request-guide?target_agent_id=agent://bob&from=agent://walker", 200],
      ["GET", "/api/onboarding/check-online?agent_id=agent://bob", 200],
      ["POST", "/v1/sessions/request", 202],
      ["GET", "/api/ops/traffic-daily", 200],
      ["GET", `/api/public/marketplace-handoff-status${NAMED}&session_id=${accepted.session_id}`, 200],
    ]);
  });

  test("a caller that names no target is told what is missing, names it and arrives too", async () => {
    expect((await newCaller().walk(guideUrl(""))).gate.status).toBe(GO);
  });

  /** Lets the last proof be of a time for which none is fresh any more. */
  async function ageProof(): Promise<void> {
    const { lastOnlineProof } = await view.keysOf("bob");
    const [session, requester, target, acceptedAt, ...rest] =
      `${await view.client.hget(lastOnlineProof, "proof")}`.split(" ");
    const aged = [session, requester, target, Number(acceptedAt) - SESSION_LIMITS.proofFreshnessMs, ...rest];
    await view.client.hset(lastOnlineProof, "proof", aged.join(" "));
  }

  test("a proof that expired is refreshed by following the gate's own link", async () => {
    await ageProof();
    await until("the proof expires", async () => (await gate()).refresh_urgency === "expired_refresh_now");
    expect(await gate()).toMatchObject({ status: NO_GO, allowed_next_step: "refresh_session_request_proof" });
    const caller = newCaller();
    const { next_step_url } = await caller.read(`${pod.url}/api/public/marketplace-handoff-status`);
    const packet = await caller.read(next_step_url);
    expect(packet).toMatchObject({ status: "refresh_due", should_refresh_before_handoff: true });
    expect((await caller.walk(guideUrl())).gate.status).toBe(GO);
    expect((await gate()).next_step_url).toMatch(/marketplace-first-job-handoff$/);
  });

  test("the metric that the guide names for a way of sending moves by each request that is sent so", async () => {
    const { endpoint, metrics } = (await http.get(guideUrl())).body.acceptance_monitoring;
    const read = async (metric: string) => (await http.get(endpoint)).body.monitors[metric];
    const walker = await relay.online(pod, "walker");
    const ways = {
      gateway: () =>
        http.post(
          `${pod.url}/v1/sessions/request`,
          { from: "agent://walker", to: BOB, purpose: "talk" },
          relay.credentials("walker"),
        ),
      websocket_envelope: () =>
        walker.ask(relay.envelope("walker", "session.request", { to: BOB, payload: { purpose: "talk" } })),
    };
    expect(Object.keys(metrics).sort()).toEqual(Object.keys(ways).sort());
    for (const [way, send] of Object.entries(ways)) {
      const before = await read(metrics[way]);
      await send();
      await until(`${metrics[way]} moves`, async () => (await read(metrics[way])) === before + 1);
    }
    await walker.close();
  });

  test("the commands of the activation plan work as they stand, one after the other, and end at go", async () => {
    const plan = (await http.get(`${pod.url}/api/public/activation-plan${NAMED}`)).body;
    expect(plan.ready_to_run).toBe(true);
    const answers = [];
    const env: NodeJS.ProcessEnv = { ...process.env, RELAY_API_KEY: keyOf("walker") };
    for (const { command } of plan.copy_paste_steps) {
      const run = await promisify(execFile)("sh", ["-c", command], { env });
      const answer = JSON.parse(run.stdout);
      answers.push(answer);
      env.RELAY_SESSION_ID = answer.session_id;
    }
    expect(answers.map(({ ok }) => ok)).toEqual(answers.map(() => true));
    expect(answers.at(-1)).toMatchObject({ status: GO, target_decision: "pending" });
  });

  test.each(["bob", "agent://BOB", "agent://*", ""])("a target that is no agent id is refused: %j", async (target) => {
    const url = guideUrl(`?target_agent_id=${encodeURIComponent(target)}`);
    const { status, body } = await http.get(url);
    expect([status, body.code, body.errors[0].field]).toEqual([400, "invalid_request", "target_agent_id"]);
  });
});

/** From each situation of the table in docs/protocol.md, and from each guide, the way ends where the table says. */
test("the table has the situations that are made here", () => {
  expect(Object.keys(MAKE)).toEqual(SITUATIONS);
});

describe.each(ROWS)("%s", (situation = "", status, _allowed, ...cells) => {
  const [endsAt, who] = cells.slice(GUIDES.length);
  beforeAll(async () => {
    if (situation !== SITUATIONS[0]) return;
    await resetWindow(await relay.link("window-reset"), {
      partitions: relay.partitions,
      deployId: "next",
      force: true,
    });
    await http.get(`${pod.url}${SURFACES.ready.path}`);
  });

  test.each(GUIDES)("ends at the right place from %s", async (guide) => {
    const target = nameOf(situation, guide);
    const query = await (MAKE[situation] as (target: string) => Promise<string>)(target);
    const asker = askerOf(situation);
    const from = `agent://${asker}`;
    const agents = { from, target_agent_id: `agent://${target}` };
    const follower = new LiteralFollower({ agents, apiKey: keyOf(asker) });
    const end = await follower.follow(pod.url + guide + query);

    expect(end.who).toBe(who);
    const startedAt = guide.split("/").at(-1);
    const expected = endsAt === "the document itself" ? startedAt : endsAt?.replace(", go", "");
    expect(new URL(end.url).pathname.split("/").at(-1)).toBe(expected);
    expect(follower.calls.filter(({ status }) => status !== 200 && status !== 202)).toEqual([]);
    const urls = follower.calls.map(({ url }) => url);
    expect(urls).toEqual([...new Set(urls)]);
    // A program that goes by the boolean alone hands off where the target approved, and nowhere before.
    for (const { url, document } of follower.documents.filter((read) => read.url.includes("from="))) {
      const isLast = situation === "approved your session" && url.includes("session_id=");
      expect([url, permitsOf(document).includes(!isLast)]).toEqual([url, false]);
    }
    const isGo = status === "go" || endsAt?.endsWith(", go");
    const gateUrl = withoutSession(end.url, SURFACES.marketplaceHandoffStatus.path);
    await until(`the gate says ${isGo ? "go" : "no go"}`, async () => {
      const gate = (await http.get(gateUrl)).body;
      return gate.status.startsWith(isGo ? "go_" : "no_go_");
    });
  });
});

test("a key that is refused ends the way at the operator", async () => {
  const name = nameOf(SITUATIONS[4] as string, GUIDES[0] as string);
  await view.client.del((await view.keysOf(name)).pending(`agent://${name}`), (await view.keysOf(name)).proofs);
  await relay.online(pod, name);
  const agents = { from: "agent://alice", target_agent_id: `agent://${name}` };
  const follower = new LiteralFollower({ agents, apiKey: "rk_wrong" });
  expect((await follower.follow(pod.url + SURFACES.activationPlan.path)).who).toBe("operator");
});

/** What the gates of a document say. */
function permitsOf(document: object): unknown[] {
  const told: unknown[] = [];
  JSON.stringify(document, (name, value) => {
    if (name === "important_handoff_permitted_from_process_window") told.push(value);
    return value;
  });
  return told;
}

/** The same query at another path; the decision on a session leaves the gate's status as it is. */
function withoutSession(url: string, path: string): string {
  const other = new URL(url);
  other.pathname = path;
  other.searchParams.delete("session_id");
  return other.href;
}
