import { type Connector, type Delivery, RelayError } from "agent-relay-connector";

/** What the agent answers to a message: change it. */
export function answer({ from, payload }: Delivery): object {
  if (typeof payload.message !== "string") return { error: 'Send a text, such as {"message":"Hi."}.' };
  return { message: `Hello, ${from}. You said: ${payload.message}` };
}

/** Whether the agent takes part in a session, here with those whom an issuer or a key that you trust vouches for: change it. */
export function approves({ verified }: Delivery): boolean {
  return verified === "agent";
}

/** Answers what comes in, until the connector ends. Rejects with what ended it, unless that was `close`. */
export async function serve(agent: Connector): Promise<void> {
  for await (const delivery of agent) {
    await respond(agent, delivery).catch((error: unknown) => {
      // Whatever goes wrong with one delivery is told, a fault of this program with where it is, and the next is served.
      const why = error instanceof RelayError ? error.message : error;
      console.error(`${delivery.type} of ${delivery.from} got no answer:`, why);
    });
  }
}

async function respond(agent: Connector, delivery: Delivery): Promise<void> {
  const { type, from, sessionId } = delivery;
  if (type === "message.send") await delivery.reply(answer(delivery));
  if (type !== "session.request" || sessionId === undefined) return;
  if (approves(delivery)) await agent.approve(sessionId, from);
  else await agent.reject(sessionId, from, "I do not know who vouches for you.");
}
