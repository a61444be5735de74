import { expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { readSession } from "window/sessions.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { readingWindow } from "../support/reading-window.ts";
import { given, useRelay } from "../support/use-relay.ts";

const SESSIONS = 40;
/** As many as keep each within its share of what pends at one target, and of what is opened in a minute. */
const ASKERS = Array.from({ length: 8 }, (_, n) => `asker-${n}-hmac`);
const relay = useRelay(...ASKERS, "bob-hmac", "left-hmac", "right-hmac");
const one = given(() => relay.startWsConnector());
const two = given(() => relay.startWsConnector());
const view = given(() => relay.view());
const link = given(() => relay.link());
const askers = given(() => relay.allOnline([one], ASKERS));
let asked = 0;

test("a session is decided until it expires, and not after; the lookups say the same", async () => {
  const bob = await relay.online(two, "bob-hmac");
  const expired = await requested();
  const live = await requested();
  await expireAt(expired, Date.now() - 1);
  await expireAt(live, Date.now() + 60_000);
  expect(await bob.ask(decision("approve", expired))).toMatchObject({ code: "session_closed" });
  expect(await bob.ask(decision("reject", live))).toMatchObject({ session_status: "rejected" });
  expect(await lookups(expired)).toEqual(["expired", "expired"]);
  expect(await lookups(live)).toEqual(["rejected", "rejected"]);
  await bob.close();
});

test("of a decision and an expiry at the same time exactly one happens; the lookups say which", async () => {
  const bob = await relay.online(two, "bob-hmac");
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, requested));
  const answers = await Promise.all(
    sessions.map(async (session, n) => {
      if (n % 2 === 0) void expireAt(session, Date.now() - 1);
      const answer = bob.ask(decision("approve", session));
      bob.send(relay.envelope("bob-hmac", "agent.heartbeat"));
      if (n % 2 === 1) void expireAt(session, Date.now() - 1);
      return await answer;
    }),
  );
  const said = answers.map(({ code, session_status }) => code ?? session_status);
  const expected = said.map((word) => (word === "approved" ? "approved" : "expired"));
  expect(said.every((word) => word === "approved" || word === "session_closed")).toBe(true);
  expect(await Promise.all(sessions.map(lookups))).toEqual(expected.map((status) => [status, status]));

  const approvals = new Set(
    [...askers.values()]
      .flatMap(({ deliveries }) => deliveries.map(({ envelope }) => envelope))
      .filter(({ type }) => type === "session.approve"),
  );
  expect(approvals.size).toBe(said.filter((word) => word === "approved").length);
  await bob.close();
});

test("of an approval and a rejection from two connections of the target exactly one wins", async () => {
  const left = await relay.online(one, "left-hmac");
  const right = await relay.online(two, "right-hmac");
  await left.ask(relay.envelope("bob-hmac", "agent.register"));
  const said = new Set<string>();
  for (let round = 0; round < SESSIONS; round += 1) {
    const session = await requested();
    const [approver, rejecter] = round % 2 === 0 ? [left, right] : [right, left];
    const takeover = relay.envelope("bob-hmac", "agent.register");
    rejecter.send(takeover);
    const answers = await Promise.all([
      approver.ask(decision("approve", session)),
      rejecter.ask(decision("reject", session)),
    ]);
    const won = answers.filter(({ frame }) => frame === "ack").map(({ session_status }) => session_status);
    const lost = answers.filter(({ frame }) => frame === "error").map(({ code }) => code);
    expect(won).toHaveLength(1);
    expect(["session_closed", "not_registered"]).toContain(lost[0]);
    expect(await lookups(session)).toEqual([won[0], won[0]]);
    said.add(won[0]);
    await approver.next("superseded", ({ notice }) => notice === "superseded");
  }
  expect(said.size).toBeGreaterThan(0);
  await Promise.all([left.close(), right.close()]);
});

test("a decision sent again gets the same answer, and reaches the requester once", async () => {
  const bob = await relay.online(two, "bob-hmac");
  const session = await requested();
  const approval = decision("approve", session);
  expect(await bob.ask(approval)).toMatchObject({ session_status: "approved" });
  expect(await bob.ask(approval)).toMatchObject({ session_status: "approved", duplicate: true });
  expect(await bob.ask(decision("approve", session))).toMatchObject({ code: "session_closed" });
  await session.asker.delivered(approval.id);
  expect(session.asker.deliveries.filter(({ envelope }) => envelope.id === approval.id)).toHaveLength(1);
  await bob.close();
});

interface Requested {
  readonly session_id: string;
  readonly request: Frame;
  readonly asker: AgentSocket;
}

/** A session of one of the askers, each in turn. */
async function requested(): Promise<Requested> {
  const name = ASKERS[asked++ % ASKERS.length] as string;
  const asker = askers.get(name) as AgentSocket;
  const request = relay.envelope(name, "session.request", { to: "agent://bob-hmac", payload: { purpose: "talk" } });
  const { session_id } = await asker.ask(request);
  return { session_id, request, asker };
}

function decision(word: "approve" | "reject", { session_id, request }: Requested): Frame {
  return relay.envelope("bob-hmac", `session.${word}`, { to: request.from, payload: { session_id } });
}

/** Moves a session's time, wherever it is kept, so that it ends then. */
async function expireAt({ session_id }: Requested, at: number): Promise<void> {
  const askedKey = (await view.keysOf("bob-hmac")).asked("agent://bob-hmac");
  const sessionKey = (await view.keysOf("bob-hmac")).session(session_id);
  const moveIfPending = `
    local record, asked = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]) or ''
    if not string.find(asked, ARGV[1], 1, true) then return 0 end
    local function moved(text, before) return (string.gsub(text, '(' .. before .. ' )%d+', '%1' .. ARGV[2], 1)) end
    redis.call('SET', KEYS[1], moved(record, 'p %l'), 'KEEPTTL')
    return redis.call('SET', KEYS[2], moved(asked, ARGV[1]), 'KEEPTTL')`;
  const createdAt = at - SESSION_LIMITS.ttlMinutesDefault * 60_000;
  await view.client.eval(moveIfPending, 2, sessionKey, askedKey, session_id.slice("ses_".length), String(createdAt));
}

/** The session's status as the window has it, and as the ack of a repeated request tells it. */
async function lookups({ session_id, request, asker }: Requested): Promise<(string | undefined)[]> {
  const stored = await readSession(link, readingWindow(link, relay.partitions), session_id);
  const ack = await asker.ask(request);
  return [stored?.status, ack.session_status];
}
