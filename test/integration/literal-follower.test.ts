import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "@jest/globals";
import { SURFACES } from "protocol/contract/surfaces.ts";
import { CONGESTED } from "window/records/route.ts";
import { resetWindow } from "window/reset.ts";
import { rowsBetween } from "../support/documents.ts";
import { HttpClient } from "../support/http.ts";
import { LiteralFollower } from "../support/literal-follower.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** From each situation of the table in docs/protocol.md, and from each guide, the way ends where the table says. */

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

const relay = useRelay("alice", "carol", "dora", "erin", "fay", "gus", "hal", "ida", ...WITH_KEYS);
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
  await view.client.del((await view.keysOf(target)).asked(`agent://${target}`));
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
  await view.client.del((await view.keysOf(name)).asked(`agent://${name}`), (await view.keysOf(name)).proofs);
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
