import { createPrivateKey, createPublicKey, type JsonWebKey } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { signed } from "../../../support/agent.ts";
import { type CredentialAgent, registerWith, TestIssuer } from "../../../support/issuer.ts";
import { Ledger, violations } from "../../../support/ledger.ts";
import { frameOf } from "../../frames.ts";
import { countsOf } from "../../report.ts";
import { ABSENT, ISSUER, type Launch, RELAY_HOST, SENDERS, type Target } from "../target.ts";
import type { Wire } from "./onslaught.ts";
import { Onslaught, pour, registered, some, strands, untilOver, Voice } from "./onslaught.ts";

/** Who has a key, and uses it as no agent does. */

const DISTINCT = 3000;
const SESSION_CONNECTIONS = 4;
const PENDING_REQUESTS = 200;
const REQUESTERS = 20;
const CROWD = 3000;
const AGENTS_EACH = 100;
/** Agents of a namespace key. Source: docs/security.md#limits. */
const AGENTS_OF_A_KEY = 1000;
const TAKING = 10;
const TAKEOVERS_EACH = 1500;

/** One connection that sends as fast as it is read. */
export async function overRate(target: Target) {
  const voice = new Voice(target, "rate");
  const to = voice.id("sink");
  const register = voice.frame("a", "agent.register");
  const messages = some(DISTINCT, () =>
    voice.frame("a", "message.send", { to, payload: { message: "x".repeat(200) } }),
  );
  return strands(target, 1, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n));
    if (wire === undefined) return;
    await on.write(wire, register);
    await pour(on, wire, messages);
  });
}

/** One key, on several connections, asks ever new targets for sessions. */
export async function sessionsToAll(target: Target) {
  const voice = new Voice(target, "sessions");
  const all = some(SESSION_CONNECTIONS, (connection) => [
    voice.frame(`a${connection}`, "agent.register"),
    ...some(DISTINCT / 2, (n) =>
      voice.frame(`a${connection}`, "session.request", {
        to: `agent://wanted-${connection}-${n}`,
        payload: { purpose: "flood", ttl_minutes: 5 },
      }),
    ),
  ]);
  return strands(target, SESSION_CONNECTIONS, async (on, n) => {
    const wire = await on.open(target.connectors[n % 2] as number, on.address(n));
    if (wire !== undefined) await pour(on, wire, all[n] as Buffer[]);
  });
}

/** Many requests of one key, in many agents' names, to a target that is not there. */
export async function fillPending(target: Target) {
  const voice = new Voice(target, "pending");
  const names = some(REQUESTERS, (n) => `r${n}`);
  const requests = some(PENDING_REQUESTS, (n) =>
    voice.frame(names[n % REQUESTERS] as string, "session.request", { to: ABSENT, payload: { purpose: "flood" } }),
  );
  return once(target, [...names.map((name) => voice.frame(name, "agent.register")), ...requests]);
}

/** A namespace key registers agents by the thousand. */
export async function crowd(target: Target) {
  const voice = new Voice(target, "crowd");
  const registers = some(CROWD, (n) => voice.frame(`a${n}`, "agent.register"));
  let accepted = 0;
  const launch = strands(target, CROWD / AGENTS_EACH, async (on, n) => {
    const wire = await on.open(target.connectors[n % 2] as number, on.address(n));
    if (wire === undefined) return;
    wire.onText = (text) => {
      accepted += isAck(text) ? 1 : 0;
    };
    for (const frame of registers.slice(n * AGENTS_EACH, (n + 1) * AGENTS_EACH)) await on.write(wire, frame);
    await untilOver(on.over);
  });
  return async () => {
    const attacked = await launch();
    if (accepted <= AGENTS_OF_A_KEY) return attacked;
    return { ...attacked, faults: [`${accepted} agents of one key registered`] };
  };
}

/** Connections on both pods take one agent from each other. Each has another one besides, so that it is not closed. */
export async function takeovers(target: Target) {
  const voice = new Voice(target, "takeovers");
  const all = some(TAKING, (n) => [
    voice.frame(`anchor-${n}`, "agent.register"),
    ...some(TAKEOVERS_EACH, () => voice.frame("prize", "agent.register")),
  ]);
  return strands(target, TAKING, async (on, n) => {
    const wire = await on.open(target.connectors[n % 2] as number, on.address(n));
    if (wire === undefined) return;
    for (const frame of all[n] as Buffer[]) await on.write(wire, frame);
    await untilOver(on.over);
  });
}

/** All of it over one connection, which stays until the time is over. */
function once(target: Target, frames: readonly Buffer[]): Launch {
  return strands(target, 1, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n));
    for (const frame of frames) if (wire !== undefined) await on.write(wire, frame);
    await untilOver(on.over);
  });
}

function isAck(text: string): boolean {
  return text.startsWith('{"frame":"ack"');
}

/** One key over very many connections: what each of them may, all together may not. */

const ADDRESSES = 20;
const KEY_CONNECTIONS = 60;
const BURST_CONNECTIONS = 200;
const DISTINCT_EACH = 4;
const MEMBERS = 1900;
const LARGEST = 30_000;
const DISPLACING_CONNECTIONS = 10;
const REQUESTERS_EACH = 50;
const REQUESTS_OF_EACH = 20;
const LONGEST_TTL_MINUTES = 1440;

/** Large frames that are costly to bring into canonical form. */
export async function bytesOfAKey(target: Target) {
  const members = Object.fromEntries(some(MEMBERS, (n) => [`m${(n * 7919) % 10_007}`, n]));
  const payload = { ...members, text: "x".repeat(LARGEST - JSON.stringify(members).length) };
  return floodOfAKey(target, "bytes", KEY_CONNECTIONS, payload);
}

/** Small frames: their number is what costs. */
export async function burstOfAKey(target: Target) {
  return floodOfAKey(target, "burst", BURST_CONNECTIONS, {});
}

function floodOfAKey(target: Target, name: string, connections: number, payload: object): Launch {
  const voice = new Voice(target, name);
  const to = voice.id("sink");
  const all = some(connections, (n) => ({
    register: voice.frame(`a${n}`, "agent.register"),
    messages: some(DISTINCT_EACH, () => voice.frame(`a${n}`, "message.send", { to, payload })),
  }));
  return strands(target, connections, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n % ADDRESSES));
    if (wire === undefined) return;
    const { register, messages } = all[n] as (typeof all)[number];
    await registered(wire, register);
    await pour(on, wire, messages);
  });
}

/** Requesters of one key, each within its bounds, displace their own sessions at one target. */
export async function displacing(target: Target) {
  const voice = new Voice(target, "displacing");
  const payload = { purpose: "flood", ttl_minutes: LONGEST_TTL_MINUTES };
  const all = some(DISPLACING_CONNECTIONS, (connection) => {
    const names = some(REQUESTERS_EACH, (n) => `r${connection}-${n}`);
    const request = (name: string) => voice.frame(name, "session.request", { to: ABSENT, payload });
    return [
      ...names.map((name) => voice.frame(name, "agent.register")),
      ...some(REQUESTS_OF_EACH, () => names.map(request)).flat(),
    ];
  });
  return strands(target, DISPLACING_CONNECTIONS, async (on, n) => {
    const wire = await on.open(target.connectors[0], on.address(n));
    const [first, ...frames] = all[n] as [Buffer, ...Buffer[]];
    if (wire === undefined) return;
    await registered(wire, first);
    await pour(on, wire, frames);
  });
}

/** Very many agents of one issuer, each with a key and a credential of its own. */

const ISSUER_CONNECTIONS = 4;
const ISSUED_EACH = 40;
/** More than a requester opens in a minute. */
const REQUESTS_OF_AN_AGENT = 64;

/** All register again and again, send messages, and ask ever new targets for sessions. */
export async function agentsOfAnIssuer(target: Target) {
  const privateKey = createPrivateKey({ key: target.issuerKey as JsonWebKey, format: "jwk" });
  const issuer = new TestIssuer(ISSUER, { privateKey, publicKey: createPublicKey(privateKey) });
  const agents = await Promise.all(
    some(ISSUER_CONNECTIONS * ISSUED_EACH, (n) => issuer.agent(`agent://${ISSUER}.a${n}`)),
  );
  const floods = some(ISSUER_CONNECTIONS, (n) => floodOf(agents.slice(n * ISSUED_EACH, (n + 1) * ISSUED_EACH)));
  return strands(target, ISSUER_CONNECTIONS, async (on, n) => {
    const wire = await on.open(target.connectors[n % 2] as number, on.address(n));
    if (wire !== undefined) await pour(on, wire, floods[n] as Buffer[]);
  });
}

function floodOf(agents: readonly CredentialAgent[]): Buffer[] {
  const registers = agents.map((agent) => registerWith(agent, RELAY_HOST));
  const requests = agents.flatMap(({ id: from, key }) =>
    some(REQUESTS_OF_AN_AGENT, (n) => {
      const to = `${from}.wants-${n}`;
      return signed(key, { type: "session.request", from, to, payload: { purpose: "flood", ttl_minutes: 5 } });
    }),
  );
  const messages = agents.map(({ id: from, key }) =>
    signed(key, { type: "message.send", from, to: `agent://${ISSUER}.sink`, payload: {} }),
  );
  return [...registers, ...requests, ...messages].map((envelope) => frameOf(JSON.stringify(envelope)));
}

const MESSAGES = 300;
const MESSAGE_CHARACTERS = 30_000;
const BYTES_PER_SECOND = 2_000_000;
const TICK_MS = 20;
/** Long enough for all of it at that speed. */
const PATIENCE_MS = 10_000;

/** Ten senders to one agent, whose line is slow: what was acked as delivered in realtime arrives. */
export async function slowAgent(target: Target) {
  const reader = new Voice(target, "reader");
  const to = reader.id("slow");
  const message = "x".repeat(MESSAGE_CHARACTERS);
  const senders = SENDERS.map((name) => {
    const voice = new Voice(target, name);
    const fields = { to, payload: { message } };
    const envelopes = some(MESSAGES / SENDERS.length, () => {
      const envelope = voice.envelope("a", "message.send", fields);
      return { envelope, frame: frameOf(JSON.stringify(envelope)) };
    });
    return { register: voice.frame("a", "agent.register"), envelopes };
  });
  const registerReader = reader.frame("slow", "agent.register");

  return async () => {
    const on = new Onslaught({ ...target, forMs: PATIENCE_MS });
    const ledger = new Ledger();
    const slow = await opened(on, target.connectors[1], 0);
    await registered(slow, registerReader);
    slow.onText = (text) => ledger.received(JSON.parse(text), "slow", "pod");
    throttle(slow);

    const sending = senders.map(async ({ register, envelopes }, n) => {
      const wire = await opened(on, target.connectors[0], 1 + n);
      await registered(wire, register);
      wire.onText = (text) => ledger.received(JSON.parse(text), `${n}`, "pod");
      for (const { envelope, frame } of envelopes) {
        ledger.sent(envelope, `${n}`);
        await on.write(wire, frame);
      }
    });
    await Promise.all(sending);
    const unanswered = () => ledger.content.entries.filter(({ attempts: [attempt] }) => attempt?.answer === undefined);
    const isSettled = () => unanswered().length === 0 && violations(ledger.content).length === 0;
    while (!on.isOver && slow.isOpen && !isSettled()) await delay(TICK_MS);

    if (unanswered().length > 0) on.faults.push(`${unanswered().length} of ${MESSAGES} messages were not answered`);
    on.faults.push(...countsOf(violations(ledger.content)));
    return on.attacked;
  };
}

async function opened(on: Onslaught, port: number, n: number): Promise<Wire> {
  const wire = await on.open(port, on.address(n));
  if (wire === undefined) throw new Error("An agent was not let in.");
  return wire;
}

/** From here on the socket is read at so many bytes a second. */
function throttle({ socket }: Wire): void {
  const startedAt = performance.now();
  const before = socket.bytesRead;
  const isAhead = () => socket.bytesRead - before > ((performance.now() - startedAt) / 1000) * BYTES_PER_SECOND;
  socket.on("data", () => {
    if (isAhead()) socket.pause();
  });
  setInterval(() => {
    if (!isAhead()) socket.resume();
  }, TICK_MS);
}
