import type { Connector, Delivery } from "agent-relay-connector";

/** What the agent answers to a message: change it. */
export function answer({ from, payload }: Delivery): object {
  return { message: `Hello, ${from}. You said: ${payload.message}` };
}

/** Whether the agent takes part in a session, here with all but a few: change it. */
export function approves({ from }: Delivery): boolean {
  return !["agent://mallory"].includes(from);
}

/** Answers what comes in, until the connector ends. Rejects with what ended it, unless that was `close`. */
export async function serve(agent: Connector): Promise<void> {
  for await (const delivery of agent) {
    await respond(agent, delivery).catch((error: unknown) => console.error(error));
  }
}

async function respond(agent: Connector, delivery: Delivery): Promise<void> {
  const { type, from, sessionId } = delivery;
  if (type === "message.send") await delivery.reply(answer(delivery));
  if (type !== "session.request" || sessionId === undefined) return;
  if (approves(delivery)) await agent.approve(sessionId, from);
  else await agent.reject(sessionId, from);
}
