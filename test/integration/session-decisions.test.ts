import { expect, test } from "@jest/globals";
import { partitionKeys } from "window/redis/keys.ts";
import { readSession } from "window/sessions.ts";
import type { Frame } from "../support/agent.ts";
import { given, useRelay } from "../support/use-relay.ts";

const SESSIONS = 40;
const relay = useRelay("alice-hmac", "bob-hmac", "left-hmac", "right-hmac");
const one = given(() => relay.startWsConnector());
const two = given(() => relay.startWsConnector());
const view = given(() => relay.view());
const link = given(() => relay.link());
const alice = given(() => relay.online(one, "alice-hmac"));

test("a session is decided until it expires, and not after; the lookups say the same", async () => {
  const bob = await relay.online(two, "bob-hmac");
  const expired = await requested();
  const live = await requested();
  await expireAt(expired.session_id, Date.now() - 1);
  await expireAt(live.session_id, Date.now() + 60_000);
  expect(await bob.ask(decision("approve", expired.session_id))).toMatchObject({ code: "session_closed" });
  expect(await bob.ask(decision("reject", live.session_id))).toMatchObject({ session_status: "rejected" });
  expect(await lookups(expired)).toEqual(["expired", "expired"]);
  expect(await lookups(live)).toEqual(["rejected", "rejected"]);
  await bob.close();
});

test("of a decision and an expiry at the same time exactly one happens; the lookups say which", async () => {
  const bob = await relay.online(two, "bob-hmac");
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, requested));
  const answers = await Promise.all(
    sessions.map(async ({ session_id }, n) => {
      if (n % 2 === 0) void expireAt(session_id, Date.now() - 1);
      const answer = bob.ask(decision("approve", session_id));
      bob.send(relay.envelope("bob-hmac", "agent.heartbeat"));
      if (n % 2 === 1) void expireAt(session_id, Date.now() - 1);
      return await answer;
    }),
  );
  const said = answers.map(({ code, session_status }) => code ?? session_status);
  const expected = said.map((word) => (word === "approved" ? "approved" : "expired"));
  expect(said.every((word) => word === "approved" || word === "session_closed")).toBe(true);
  expect(await Promise.all(sessions.map(lookups))).toEqual(expected.map((status) => [status, status]));

  const approvals = new Set(
    alice.deliveries.map(({ envelope }) => envelope).filter(({ type }) => type === "session.approve"),
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
      approver.ask(decision("approve", session.session_id)),
      rejecter.ask(decision("reject", session.session_id)),
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
  const { session_id } = await requested();
  const approval = decision("approve", session_id);
  expect(await bob.ask(approval)).toMatchObject({ session_status: "approved" });
  expect(await bob.ask(approval)).toMatchObject({ session_status: "approved", duplicate: true });
  expect(await bob.ask(decision("approve", session_id))).toMatchObject({ code: "session_closed" });
  await alice.delivered(approval.id);
  expect(alice.deliveries.filter(({ envelope }) => envelope.id === approval.id)).toHaveLength(1);
  await bob.close();
});

interface Requested {
  readonly session_id: string;
  readonly request: Frame;
}

async function requested(): Promise<Requested> {
  const request = relay.envelope("alice-hmac", "session.request", {
    to: "agent://bob-hmac",
    payload: { purpose: "talk" },
  });
  const { session_id } = await alice.ask(request);
  return { session_id, request };
}

function decision(word: "approve" | "reject", session_id: string): Frame {
  return relay.envelope("bob-hmac", `session.${word}`, { to: "agent://alice-hmac", payload: { session_id } });
}

/** Moves the end of a session, wherever it is kept. */
async function expireAt(sessionId: string, at: number): Promise<void> {
  const pendingKey = partitionKeys.pending(0, "agent://bob-hmac");
  const sessionKey = partitionKeys.session(0, sessionId);
  const [requester, createdAt, expiresAt] = await view.client.hmget(
    sessionKey,
    "requester",
    "created_at",
    "expires_at",
  );
  const member = (end: unknown) => [sessionId, requester, createdAt, end].join(" ");
  const moveIfPending = `
    local score = redis.call('ZSCORE', KEYS[2], ARGV[2])
    if not score then return 0 end
    redis.call('HSET', KEYS[1], 'expires_at', ARGV[1])
    redis.call('ZREM', KEYS[2], ARGV[2])
    return redis.call('ZADD', KEYS[2], score, ARGV[3])`;
  await view.client.eval(moveIfPending, 2, sessionKey, pendingKey, String(at), member(expiresAt), member(at));
}

/** The session's status as the window has it, and as the ack of a repeated request tells it. */
async function lookups({ session_id, request }: Requested): Promise<(string | undefined)[]> {
  const stored = await readSession(link, session_id, 1);
  const ack = await alice.ask(request);
  return [stored?.status, ack.session_status];
}
