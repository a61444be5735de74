import type { AgentKey, AgentSocket, Frame } from "../support/agent.ts";
import type { Pod, TestRelay } from "../support/relay.ts";
import type { AsyncApiReader } from "./asyncapi-reader.ts";

/** An agent on a connection of its own, which sends the examples of the AsyncAPI document and nothing else. */
export class AsyncApiAgent {
  readonly id: string;
  readonly key: AgentKey;
  readonly socket: AgentSocket;
  readonly #reader: AsyncApiReader;

  constructor(reader: AsyncApiReader, id: string, key: AgentKey, socket: AgentSocket) {
    this.id = id;
    this.key = key;
    this.socket = socket;
    this.#reader = reader;
  }

  /** The example of a message, made ready to send. */
  made(message: string, to = "agent://nobody", sessionId?: string): Frame {
    // The relay does not check the digest: it is for whoever makes a receipt.
    const ofRequest = { "payload.session_id": sessionId as string, "payload.request_sha256": "A".repeat(43) };
    const session = sessionId === undefined ? {} : ofRequest;
    return this.#reader.envelope(message, this.key, { from: this.id, to, ...session });
  }

  /** Sends such an example; the answer. */
  async ask(message: string, to?: string, sessionId?: string): Promise<Frame> {
    return await this.socket.ask(this.made(message, to, sessionId));
  }

  async delivery(type: string): Promise<Frame> {
    return await this.socket.next(type, ({ frame, envelope }) => frame === "deliver" && envelope.type === type);
  }
}

/** Connects agents of a relay to its pod, and registers them. */
export function joining(relay: TestRelay, pod: Pod, reader: AsyncApiReader) {
  const join = async (name: string, path = "/ws"): Promise<AsyncApiAgent> => {
    const socket = await relay.connect(pod, path);
    const agent = new AsyncApiAgent(reader, `agent://${name}`, relay.keys.agents.get(name) as AgentKey, socket);
    const { frame, code } = await agent.ask("agent.register");
    if (frame !== "ack") throw new Error(`agent.register was refused: ${code}`);
    return agent;
  };
  /** A session that one agent has requested of another, both online. */
  const pending = async (requesterName: string, targetName: string) => {
    const [requester, target] = [await join(requesterName), await join(targetName)];
    const { session_id } = await requester.ask("session.request", target.id);
    return { requester, target, sessionId: session_id as string };
  };
  return { join, pending };
}
