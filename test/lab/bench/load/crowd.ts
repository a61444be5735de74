import { setTimeout as delay } from "node:timers/promises";
import { instant, type Pids, type Span, spanOf } from "../../accounting.ts";
import type { AgentRelayDialect, Dialect } from "./dialects.ts";
import { WebSocketClient } from "./websocket.ts";

/** Handshakes under way at once. */
const AT_ONCE = 50;
const TICK_MS = 1;

interface Member {
  readonly client: WebSocketClient;
  readonly agents: readonly string[];
}

/** Agents that are there: registered, and otherwise silent until they are told to send heartbeats. */
export class Crowd {
  readonly #members: Member[] = [];
  #answers = 0;

  /** Adds connections, on the ports in turn, with so many agents each. */
  async add(
    dialect: Dialect,
    ports: readonly number[],
    { connections, agentsEach }: { readonly connections: number; readonly agentsEach: number },
  ): Promise<void> {
    const from = this.#members.length;
    const open = async (n: number) => {
      const agents = Array.from({ length: agentsEach }, (_, k) => `agent://load.crowd-${n}-${k}`);
      const client = await WebSocketClient.open(ports[n % ports.length] as number, dialect.path);
      await dialect.register(client, agents);
      const read = dialect.reader((text) => client.send(text, dialect.opcode));
      client.onPayloads((payloads) => {
        payloads.forEach(read);
        this.#answers += payloads.length;
      });
      this.#members.push({ client, agents });
    };
    for (let n = from; n < from + connections; n += AT_ONCE) {
      const size = Math.min(AT_ONCE, from + connections - n);
      await Promise.all(Array.from({ length: size }, (_, k) => open(n + k)));
    }
  }

  /** Every agent in turn sends a heartbeat, so many a second in all. Returns what was answered meanwhile. */
  async beat(
    dialect: AgentRelayDialect,
    { perSecond, warmUpMs, measureMs, pids }: Beat,
  ): Promise<Span & { readonly answered: number }> {
    const beating = this.#beatFor(dialect, perSecond, warmUpMs + measureMs);
    await delay(warmUpMs);
    const before = { ...instant(pids), answers: this.#answers };
    await delay(measureMs);
    const span = { ...spanOf(before, instant(pids)), answered: this.#answers - before.answers };
    await beating;
    return span;
  }

  async #beatFor(dialect: AgentRelayDialect, perSecond: number, forMs: number): Promise<void> {
    // Neighbours in time are on different connections, as they are in life.
    const agentsEach = this.#members[0]?.agents.length ?? 0;
    const startedAt = performance.now();
    let sent = 0;
    while (performance.now() - startedAt < forMs) {
      for (const due = ((performance.now() - startedAt) / 1000) * perSecond; sent < due; sent += 1) {
        const { client, agents } = this.#members[sent % this.#members.length] as Member;
        const agent = agents[Math.floor(sent / this.#members.length) % agentsEach] as string;
        client.send(dialect.heartbeat(agent), dialect.opcode);
      }
      await delay(TICK_MS);
    }
  }
}

export interface Beat {
  readonly perSecond: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly pids: Pids;
}
