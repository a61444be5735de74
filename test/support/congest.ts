import type { AgentSocket } from "./agent.ts";
import type { TestRelay } from "./relay.ts";

const TEXT = "x".repeat(30_000);
/** Sent before their acks: far fewer than close a connection that is congested. */
const AT_ONCE = 4;

/** Numbers of messages. */
export interface Congested {
  /** Those that were acked in realtime. */
  readonly promised: readonly number[];
  /** Those that were `unavailable`, since Redis was late: nobody knows whether they arrive. */
  readonly unknown: ReadonlySet<number>;
}

/** Has a client read no more, and sends numbered messages of `agent://alice` to its agent until it is congested. */
export async function congest(
  relay: TestRelay,
  alice: AgentSocket,
  client: AgentSocket,
  name: string,
): Promise<Congested> {
  client.socket.pause();
  const [promised, unknown] = [[] as number[], new Set<number>()];
  const send = async (n: number): Promise<boolean> => {
    const message = { to: `agent://${name}`, payload: { n, text: TEXT } };
    const { target_delivery } = await alice.ask(relay.envelope("alice", "message.send", message));
    if (target_delivery === undefined) unknown.add(n);
    else if (target_delivery.can_deliver_realtime) promised.push(n);
    return target_delivery?.can_deliver_realtime === false;
  };
  for (let n = 0; ; n += AT_ONCE) {
    const refused = await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => send(n + index)));
    // Each ack is looked for by itself: they are found in any order.
    if (refused.includes(true)) return { promised: promised.toSorted((a, b) => a - b), unknown };
  }
}
