import { setTimeout as delay } from "node:timers/promises";
import type { Frame } from "../../../support/agent.ts";
import { SENDERS } from "../support/names.ts";
import type { Target } from "../target.ts";
import { registered, some } from "./agents.ts";
import { Onslaught, Voice } from "./onslaught.ts";
import { frameOf, type Wire } from "./wire.ts";

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
    const envelopes = some(MESSAGES / SENDERS.length, () => voice.envelope("a", "message.send", fields));
    return {
      register: voice.frame("a", "agent.register"),
      frames: envelopes.map((one) => frameOf(JSON.stringify(one))),
    };
  });
  const registerReader = reader.frame("slow", "agent.register");

  return async () => {
    const on = new Onslaught({ ...target, forMs: PATIENCE_MS });
    const slow = await opened(on, target.connectors[1], 0);
    await registered(slow, registerReader);
    const arrived = new Set<string>();
    slow.onText = (text) => {
      const { frame, envelope }: Frame = JSON.parse(text);
      if (frame === "deliver") arrived.add(envelope.id);
    };
    throttle(slow);

    const promised = new Set<string>();
    let answers = 0;
    const sending = senders.map(async ({ register, frames }, n) => {
      const wire = await opened(on, target.connectors[0], 1 + n);
      await registered(wire, register);
      wire.onText = (text) => {
        const { envelope_id, target_delivery }: Frame = JSON.parse(text);
        answers += 1;
        if (target_delivery?.can_deliver_realtime === true) promised.add(envelope_id);
      };
      for (const frame of frames) await on.write(wire, frame);
    });
    await Promise.all(sending);
    const missing = () => [...promised].filter((id) => !arrived.has(id)).length;
    while (!on.isOver && slow.isOpen && (answers < MESSAGES || missing() > 0)) await delay(TICK_MS);

    if (answers < MESSAGES) on.faults.push(`${MESSAGES - answers} of ${MESSAGES} messages were not answered`);
    if (missing() > 0) on.faults.push(`${missing()} of ${promised.size} acked in realtime did not arrive`);
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
