import type { VerifiedEnvelope } from "@agent-relay/shared/intake/steps.ts";
import type { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import type { Acceptance, PresenceAcceptance } from "@agent-relay/shared/window/acceptance.ts";
import type { RouteReleaser } from "@agent-relay/shared/window/routes.ts";
import type { Connection } from "../src/connection.ts";
import { Ownership } from "../src/ownership.ts";
import type { PodChannel } from "../src/pod-channel.ts";
import { Registrar } from "../src/registrar.ts";

export const AGENT = "agent://alice";

/** One connection and the registrar, as far as one agent is concerned; nothing but ownership is real around them. */
export class RegistrarBench {
  readonly agents = new Ownership("con_1");
  /** What the connection was sent, and refusals as `{ refused: outcome }`. */
  // biome-ignore lint/suspicious/noExplicitAny: frames as they go over the wire.
  readonly said: any[] = [];
  readonly channel = { ready: true, caughtUp: () => this.#caughtUp.promise };
  readonly #caughtUp = Promise.withResolvers<void>();
  closedWith: number | undefined;
  readonly #registrar: Registrar;
  readonly #connection: Connection;

  constructor() {
    const keys = { ring: { mayAct: () => true } } as unknown as KeyStore;
    const releaser = { release: () => {} } as unknown as RouteReleaser;
    this.#registrar = new Registrar({ keys, channel: this.channel as unknown as PodChannel, releaser });
    this.#connection = {
      agents: this.agents,
      isClosing: false,
      noteValid: () => {},
      send: (text: string) => this.said.push(JSON.parse(text)),
      close: ({ code }: { code: number }) => {
        this.closedWith = code;
      },
    } as unknown as Connection;
  }

  /** A register or heartbeat was sent to acceptance. */
  begin(): void {
    this.agents.begin(AGENT);
  }

  /** It was answered. */
  settle(acceptance: Acceptance): void {
    const verified = { envelope: { id: "e", type: "agent.register", from: AGENT }, keyId: "k" };
    const refuse = ({ outcome }: Acceptance) => this.said.push({ refused: outcome });
    this.#registrar.settle(this.#connection, verified as unknown as VerifiedEnvelope, acceptance, refuse);
  }

  /** All that was published to the pod before has come in. */
  async catchUp(): Promise<void> {
    this.#caughtUp.resolve();
    await this.#caughtUp.promise;
  }

  /** Another connection took the agent over. */
  supersede(epoch: number): void {
    this.#registrar.supersede(this.#connection, AGENT, epoch);
  }
}

/** The agent is online on this connection. */
export function online(epoch: number | null, changes: Partial<PresenceAcceptance> = {}): PresenceAcceptance {
  return { outcome: "accepted", about: "presence", status: "online", lastSeen: 1, epoch, waiting: [], ...changes };
}
