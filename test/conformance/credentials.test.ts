import { describe, expect, test } from "@jest/globals";
import type { JWTPayload } from "jose";
import { CREDENTIAL_REASONS, type CredentialReason } from "relay-protocol/wire/credential.ts";
import { type AgentSocket, type Frame, signed } from "../support/agent.ts";
import { type CredentialAgent, registerWith, TestIssuer } from "../support/issuer.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const IN_FORCE_WITHIN_MS = 5000;
const HOST = "relay.example";
const OVER_THE_LIMIT = 25;

const relay = conformingRelay("alice");
const acme = new TestIssuer("acme");
const globex = new TestIssuer("globex");
const whole = relay.keys.file as object;
const GLOBEX = globex.record(["agent://globex.*"]);
const ISSUERS = [acme.record(["agent://acme.*"]), GLOBEX];
/** A term that a test waits for. */
const BRIEF_SECONDS = 2;

const pod = given(async () => {
  await relay.writeKeys({ ...whole, issuers: ISSUERS });
  return await relay.startWsConnectors({ RELAY_PUBLIC_HOSTS: HOST });
});
const alice = given(() => relay.online(pod, "alice"));

const secondsFromNow = (seconds: number) => Math.ceil(Date.now() / 1000) + seconds;
const register = (socket: AgentSocket, agent: CredentialAgent) => socket.ask(registerWith(agent, HOST));
const message = (agent: CredentialAgent, to = "agent://alice"): Frame =>
  signed(agent.key, { type: "message.send", from: agent.id, to, payload: { message: "hi" } });
const heartbeat = ({ id, key }: CredentialAgent): Frame => signed(key, { type: "agent.heartbeat", from: id });

async function online(agent: CredentialAgent): Promise<AgentSocket> {
  const socket = await relay.connect(pod);
  expect(await register(socket, agent)).toMatchObject({ accepted: true, presence: { status: "online" } });
  return socket;
}

describe("an agent with a credential", () => {
  test("registers, is told when its credential ends, sends and receives", async () => {
    const bob = await acme.agent("agent://acme.bob");
    const socket = await relay.connect(pod);
    const ack = await register(socket, bob);
    expect(ack.presence).toMatchObject({ agent_id: bob.id, status: "online" });
    expect(Date.parse(ack.credential_expires_at_iso)).toBeGreaterThan(Date.now() + 3_000_000);
    expect(await socket.ask(heartbeat(bob))).toMatchObject({
      accepted: true,
      credential_expires_at_iso: ack.credential_expires_at_iso,
    });

    const sent = message(bob);
    expect(await socket.ask(sent)).toMatchObject({ accepted: true, target_delivery: { status: "online" } });
    expect((await alice.delivered(sent.id)).envelope).toEqual(sent);
    const answer = relay.envelope("alice", "message.send", { to: bob.id });
    await alice.ask(answer);
    await socket.delivered(answer.id);
  });

  test("belongs to the last register that was accepted, however old its credential is", async () => {
    const newer = await acme.agent("agent://acme.twice");
    const older = await acme.renewed(newer, { iat: secondsFromNow(-600), exp: secondsFromNow(600) });
    const [first, last] = [await online(newer), await online(older)];
    expect(await first.untilClosed()).toBe(4409);
    const toThem = relay.envelope("alice", "message.send", { to: newer.id });
    expect(await alice.ask(toThem)).toMatchObject({ target_delivery: { status: "online" } });
    await last.delivered(toThem.id);
  });

  test("of one issuer reaches one of another, each for itself alone", async () => {
    const [ann, bea] = [await acme.agent("agent://acme.ann"), await globex.agent("agent://globex.bea")];
    const [annsSocket, beasSocket] = [await online(ann), await online(bea)];
    const sent = message(ann, bea.id);
    expect(await annsSocket.ask(sent)).toMatchObject({ target_delivery: { status: "online" } });
    await beasSocket.delivered(sent.id);
    const forged = signed(ann.key, { type: "message.send", from: bea.id, to: ann.id });
    expect(await annsSocket.ask(forged)).toMatchObject({ code: "key_not_allowed" });
  });

  test.each([false, true])(
    "need not wait for the answer to its register before it sends, behind another agent: %s",
    async (isSecond) => {
      const eager = await acme.agent("agent://acme.eager");
      const socket = isSecond ? await online(await acme.agent("agent://acme.first")) : await relay.connect(pod);
      const sent = [message(eager), heartbeat(eager), message(eager)];
      for (const envelope of [registerWith(eager, HOST), ...sent]) socket.send(envelope);
      for (const { id } of sent) {
        const isAnswer = ({ envelope_id }: Frame) => envelope_id === id;
        expect(await socket.next("an answer", isAnswer)).toMatchObject({ accepted: true });
      }
      const acks = socket.frames.flatMap(({ envelope_id }: Frame) => sent.findIndex(({ id }) => id === envelope_id));
      // The heartbeat may be of another partition than the target of the messages: each has an order of its own.
      expect(acks.filter((index) => sent[index]?.type === "message.send")).toEqual([0, 2]);
    },
  );

  test("is unknown on a connection until it registers there", async () => {
    const bob = await acme.agent("agent://acme.known");
    await online(bob);
    const other = await relay.connect(pod);
    for (const envelope of [heartbeat(bob), message(bob)]) {
      expect(await other.ask(envelope)).toMatchObject({ code: "unknown_key" });
    }
    const without = signed(bob.key, { type: "agent.register", from: bob.id });
    expect(await other.ask(without)).toMatchObject({ code: "unknown_key" });
  });

  test("whose register behind another is refused gets what waited refused as well", async () => {
    const bob = await acme.agent("agent://acme.refused");
    const socket = await relay.connect(pod);
    const waiting = message(bob);
    socket.send(registerWith({ ...bob, credential: `${bob.credential}A` }, HOST));
    expect(await socket.ask(waiting)).toMatchObject({ code: "unknown_key" });
  });
});

describe("agents that share a key on one connection", () => {
  const shared = async () => {
    const ann = await acme.agent("agent://acme.shares1");
    return [ann, await acme.renewed({ ...ann, id: "agent://acme.shares2" })] as const;
  };

  test("both act, each under its own credential", async () => {
    const [ann, bea] = await shared();
    const socket = await online(ann);
    await register(socket, bea);
    for (const agent of [ann, bea, ann]) {
      expect(await socket.ask(message(agent))).toMatchObject({ accepted: true });
      expect(await socket.ask(heartbeat(agent))).toMatchObject({ accepted: true });
    }
    expect(await socket.ask(message({ ...ann, id: "agent://acme.stranger" }))).toMatchObject({
      code: "key_not_allowed",
    });
  });

  test("need not wait for the answers to their registers", async () => {
    const [ann, bea] = await shared();
    const socket = await online(ann);
    socket.send(registerWith(bea, HOST));
    expect(await socket.ask(message(bea))).toMatchObject({ accepted: true });
  });

  test("end one by one: where one is taken over the other goes on", async () => {
    const [ann, bea] = await shared();
    const socket = await online(ann);
    await register(socket, bea);
    await online(bea);
    await socket.next("the takeover", ({ notice }) => notice === "superseded");
    expect(await socket.ask(message(bea))).toMatchObject({ code: "key_not_allowed" });
    expect(await socket.ask(message(ann))).toMatchObject({ accepted: true });
  });
});

describe("invalid_credential says why, each with what to do:", () => {
  const REFUSED: Readonly<Record<string, () => Promise<Frame>>> = {
    malformed: async () => registerWith({ ...(await acme.agent("agent://acme.x")), credential: "a.b.c" }, HOST),
    unknown_issuer: async () => registerWith(await new TestIssuer("initech").agent("agent://acme.x"), HOST),
    expired: () => withTerms({ iat: secondsFromNow(-60), exp: secondsFromNow(-1) }),
    not_yet_valid: () => withTerms({ nbf: secondsFromNow(90) }),
    agent_not_allowed: async () => registerWith(await acme.agent("agent://globex.x"), HOST),
    wrong_relay: async () => registerWith(await acme.agent("agent://acme.x"), "other.example"),
    signature: async () => {
      const [bob, eve] = [await acme.agent("agent://acme.x"), await acme.agent("agent://acme.y")];
      const [head, body] = bob.credential.split(".");
      return registerWith({ ...bob, credential: `${head}.${body}.${eve.credential.split(".")[2]}` }, HOST);
    },
    key_mismatch: async () => {
      const [bob, eve] = [await acme.agent("agent://acme.x"), await acme.agent("agent://acme.x")];
      return registerWith({ ...bob, credential: eve.credential }, HOST);
    },
  };
  const withTerms = async (terms: JWTPayload) => registerWith(await acme.agent("agent://acme.x", terms), HOST);

  test.each(Object.entries(REFUSED))("%s", async (reason, make) => {
    const socket = await relay.connect(pod);
    const answer = await socket.ask(await make());
    expect(answer).toMatchObject({ code: "invalid_credential", retry: "fix" });
    expect(answer.message.startsWith(`${reason}:`)).toBe(true);
    const { hint } = CREDENTIAL_REASONS[reason as CredentialReason];
    expect(answer.hint.startsWith(hint)).toBe(true);
    if (reason === "wrong_relay") expect(answer.hint).toContain(HOST);
  });
});

describe("a credential ends", () => {
  const revoked: object[] = [];
  const revoke = async ({ id }: CredentialAgent) => {
    revoked.push({ agent: id, issued_before: new Date(Date.now() + 60_000).toISOString() });
    await relay.writeKeys({ ...whole, issuers: [acme.record(["agent://acme.*"], { revoked }), GLOBEX] });
  };
  /** Issues credentials until their registers come in before a brief term ends, however long the machine stands still. */
  const untilRegistered = async (socket: AgentSocket, issue: (exp: number) => Promise<CredentialAgent[]>) =>
    await until("all are accepted", async () => {
      const issued = await issue(secondsFromNow(BRIEF_SECONDS));
      const answers = await Promise.all(issued.map((agent) => register(socket, agent)));
      return answers.every(({ accepted }) => accepted === true);
    });

  // Those that wait for a term wait at once; what their clients saw is validated after the next test.
  test.concurrent("with its term: the agent is released, and its connection closed with 4403", async () => {
    const socket = await relay.connect(pod);
    const id = "agent://acme.brief";
    await untilRegistered(socket, async (exp) => [await acme.agent(id, { exp })]);
    expect(await socket.untilClosed()).toBe(4403);
    expect(socket.notices("released")).toMatchObject([{ agent_id: id, reason: "expired" }]);
  });

  test("and those that stay are not closed, nor is the connection for what the client still had under way", async () => {
    const kept = await acme.agent("agent://acme.stays");
    const socket = await online(kept);
    const brief = await acme.agent("agent://acme.brief2");
    await register(socket, brief);
    await revoke(brief);
    await socket.next("the release", ({ notice }) => notice === "released");
    for (let n = 0; n < OVER_THE_LIMIT; n += 1) {
      expect(await socket.ask(message(brief))).toMatchObject({ code: "unknown_key" });
    }
    expect(await socket.ask(message(kept))).toMatchObject({ accepted: true });
  });

  test("amid heartbeats that are under way: others notice nothing, and its client hears of it once", async () => {
    const kept = await acme.agent("agent://acme.stays2");
    const socket = await online(kept);
    const brief = await acme.agent("agent://acme.brief3");
    await register(socket, brief);
    await revoke(brief);
    const sent: string[] = [];
    await until("the release", () => {
      for (const envelope of [heartbeat(brief), message(kept)]) {
        socket.send(envelope);
        sent.push(envelope.id);
      }
      return socket.notices("released").length > 0;
    });
    const answerTo = (id: string) => socket.next("an answer", ({ envelope_id }) => envelope_id === id);
    const answers = await Promise.all(sent.map(answerTo));
    expect(await socket.ask(heartbeat(brief))).toMatchObject({ code: "unknown_key" });
    // One that came in before the end, and is written with others at the release, finds its agent gone.
    const codes = answers.map(({ code }) => code ?? "accepted");
    expect(["accepted", "not_registered", "unknown_key"]).toEqual(expect.arrayContaining(codes));
    expect(answers.filter((_, n) => n % 2 === 1).every(({ accepted }) => accepted === true)).toBe(true);
    expect(socket.notices("released")).toMatchObject([{ agent_id: brief.id, reason: "revoked" }]);
  });

  test("for one of two agents that share a key: what its client still had under way ends nothing", async () => {
    const ann = await acme.agent("agent://acme.shares1");
    const socket = await online(ann);
    const brief = await acme.renewed({ ...ann, id: "agent://acme.shares3" });
    await register(socket, brief);
    await revoke(brief);
    await socket.next("the release", ({ notice }) => notice === "released");
    for (let n = 0; n < OVER_THE_LIMIT; n += 1) {
      expect(await socket.ask(message({ ...ann, id: brief.id }))).toMatchObject({ code: "key_not_allowed" });
    }
    expect(await socket.ask(message(ann))).toMatchObject({ accepted: true });
  });

  test("for a connection with the agent's takeover by another", async () => {
    const [taken, kept] = [await acme.agent("agent://acme.taken"), await acme.agent("agent://acme.stays3")];
    const socket = await online(kept);
    await register(socket, taken);
    await online(taken);
    await socket.next("the takeover", ({ notice }) => notice === "superseded");
    expect(await socket.ask(message(taken))).toMatchObject({ code: "unknown_key" });
    expect(await socket.ask(message(kept))).toMatchObject({ accepted: true });
  });

  test.concurrent("without a gap where it was renewed before, with the same key or another", async () => {
    // A connection with an agent is read while registers are under way.
    const socket = await online(await acme.agent("agent://acme.first2"));
    const id = "agent://acme.renewed";
    let endsAt = 0;
    let renewed: CredentialAgent[] = [];
    await untilRegistered(socket, async (exp) => {
      endsAt = exp * 1000;
      const first = await acme.agent(id, { exp });
      renewed = [await acme.renewed(first), await acme.agent(id)];
      return [first, ...renewed];
    });
    for (const agent of renewed) expect(await socket.ask(message(agent))).toMatchObject({ accepted: true });
    await until("the first has ended", () => Date.now() > endsAt + 1000);
    for (const agent of renewed) {
      const { accepted, credential_expires_at_iso } = await socket.ask(heartbeat(agent));
      expect(accepted).toBe(true);
      expect(Date.parse(credential_expires_at_iso)).toBeGreaterThan(Date.now() + 3_000_000);
    }
    expect(socket.notices("released")).toEqual([]);
  });

  test("within 5 s of a change of the keys file, and its client is told why", async () => {
    const CHANGES: Readonly<Record<string, (issuer: TestIssuer) => object | null>> = {
      revoked: () => ({ revoked: [{ agent: "*", issued_before: new Date(Date.now() + 60_000).toISOString() }] }),
      unknown_issuer: () => null,
      agent_not_allowed: () => ({ agents: ["agent://other.agent"] }),
      expired: (issuer) => ({ keys: issuer.keys({ expires_at: new Date().toISOString() }) }),
    };
    const reasons = Object.keys(CHANGES);
    const issuers = reasons.map((reason) => new TestIssuer(reason.replaceAll("_", "-")));
    const records = issuers.map((issuer) => issuer.record([`agent://${issuer.name}.agent`]));
    const changes = issuers.map((issuer, n) => CHANGES[reasons[n] as string]?.(issuer));
    const changed = records.flatMap((record, n) => (changes[n] === null ? [] : { ...record, ...changes[n] }));
    const agents = await Promise.all(issuers.map((issuer) => issuer.agent(`agent://${issuer.name}.agent`)));
    await relay.writeKeys({ ...whole, issuers: [...ISSUERS, ...records] });
    await untilInForce(agents);
    const sockets = await Promise.all(agents.map(online));
    await relay.writeKeys({ ...whole, issuers: [...ISSUERS, ...changed] });
    for (const [n, socket] of sockets.entries()) {
      expect(await socket.untilClosed(IN_FORCE_WITHIN_MS)).toBe(4403);
      expect(socket.notices("released")).toMatchObject([{ agent_id: agents[n]?.id, reason: reasons[n] }]);
    }
    await relay.writeKeys({ ...whole, issuers: [...ISSUERS, ...records] });
    await untilInForce(agents);
  });
});

/** Waits until these agents may register on every pod: connections go to them in turn. */
async function untilInForce(agents: readonly CredentialAgent[]): Promise<void> {
  for (const agent of agents) {
    const isAccepted = async () => (await register(await relay.connect(pod), agent)).accepted === true;
    await until("it is in force", async () => (await isAccepted()) && (await isAccepted()), IN_FORCE_WITHIN_MS);
  }
}
