import type { Frame } from "../../../support/agent.ts";
import { ABSENT } from "../support/names.ts";
import type { Launch, Target } from "../target.ts";
import { pour, strands, Voice } from "./onslaught.ts";
import type { Wire } from "./wire.ts";

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

export function some<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

export async function untilOver(over: AbortSignal): Promise<void> {
  if (!over.aborted) await new Promise((resolve) => over.addEventListener("abort", resolve));
}

/** Registers an agent. @throws Error when it is refused. */
export async function registered(wire: Wire, frame: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    wire.onText = (text) => {
      const { frame: kind, code }: Frame = JSON.parse(text);
      if (kind === "ack") resolve();
      if (kind === "error") reject(new Error(`A register was refused with ${code}.`));
    };
    wire.socket.on("close", () => reject(new Error("The connection was closed at the register.")));
    wire.socket.write(frame);
  });
}

function isAck(text: string): boolean {
  return text.startsWith('{"frame":"ack"');
}
