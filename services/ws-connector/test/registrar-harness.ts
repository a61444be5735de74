import type { VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import { AuditLog } from "relay-runtime/audit-log.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { Tracing } from "relay-runtime/tracing/tracing.ts";
import type { Acceptance, PresenceAcceptance, Unavailable } from "relay-window/acceptance/acceptance.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import type { Route, RouteReleaser } from "relay-window/presence/routes.ts";
import { Authority } from "../src/agents/authority.ts";
import { type Heartbeats, IntakeBatch } from "../src/agents/heartbeats.ts";
import { Ownership } from "../src/agents/ownership.ts";
import { AgentConnections, Registrar } from "../src/agents/registrar.ts";
import type { Connection } from "../src/connection/connection.ts";
import type { PauseReason } from "../src/throttle/read-pause.ts";

const logger = createLogger({ service: "test", level: "silent" });
/** Where nobody asked for an audit log, or for traces. */
export const NO_AUDIT = new AuditLog({ file: undefined, service: "test", logger });
export const NO_TRACING = new Tracing({
  settings: { otelExporterOtlpEndpoint: undefined, otelTracesSamplerArg: 1, otelSdkDisabled: false },
  service: "test",
  logger,
});
export const AGENT = "agent://alice";
export const KEY_ID = "alice-1";
export const verified = (type: string) =>
  ({
    envelope: { id: "e", type, from: AGENT, payload: {} },
    kind: type.slice("agent.".length),
    keyId: KEY_ID,
    key: `${KEY_ID} identity`,
  }) as unknown as VerifiedEnvelope;

/** The registrar and one connection with one agent; of what is around the registrar, only the ownership is real. */
export class RegistrarHarness {
  readonly agents = new Ownership("con_1");
  /** The frames that the client was sent, and refusals as `{ refused: outcome }`. */
  // biome-ignore lint/suspicious/noExplicitAny: frames as they go over the wire.
  readonly sent: any[] = [];
  readonly channel = { isReady: true, isReadyFor: () => this.channel.isReady, caughtUp: () => this.#caughtUp.promise };
  readonly #caughtUp = Promise.withResolvers<void>();
  /** Of envelopes that count for the connection. */
  readonly validKeys: string[] = [];
  closedWith: number | undefined;
  answersItsClose = true;
  isDisconnected = false;
  readonly #gone = Promise.withResolvers<void>();
  readonly registrar: Registrar;
  readonly connection: Connection;
  /** Routes that were released. */
  readonly released: Route[] = [];
  /** What went to Redis, in its order: heartbeats that were gathered, of an agent or of all, and releases. */
  readonly sentToRedis: string[] = [];
  readonly heartbeats = {
    flushOf: (_: Connection, agent = "all") => void this.sentToRedis.push(`heartbeats of ${agent}`),
    settled: async () => this.heartbeats.flushOf(this.connection),
  } as unknown as Heartbeats;
  readonly batch = new IntakeBatch({ logger });
  readonly agentConnections = new AgentConnections();
  readonly releaser = {
    release: (routes: readonly Route[]) => {
      this.sentToRedis.push("release");
      this.released.push(...routes);
    },
    unreleased: () => this.unreleased,
    flush: async () => {},
  } as unknown as RouteReleaser;

  /** What is to be released of the agent and the connection yet. */
  unreleased: Route | undefined;
  /** What the keys file says of the agent's key. */
  isAllowed = true;

  constructor() {
    const keys = { ring: { mayAct: () => this.isAllowed } } as unknown as KeyStore;
    const authority = new Authority({ keys, hosts: new Set() });
    const channel = this.channel as unknown as PodChannel;
    const { releaser, heartbeats, batch, agentConnections } = this;
    this.registrar = new Registrar({
      authority,
      channel,
      releaser,
      heartbeats,
      batch,
      agentConnections,
      audit: NO_AUDIT,
    });
    this.connection = {
      id: "con_1",
      agents: this.agents,
      isClosing: false,
      isDraining: false,
      isCongested: false,
      pause: (reason: PauseReason) => Object.assign(this.connection, { isDraining: reason === "draining" }),
      noteValid: (keyId: string) => void this.validKeys.push(keyId),
      send: (text: string) => this.sent.push(JSON.parse(text)),
      close: ({ code }: { code: number }) => {
        this.closedWith = code;
        if (this.answersItsClose) this.#gone.resolve();
      },
      closeNow: () => {
        this.isDisconnected = true;
        this.#gone.resolve();
      },
      gone: () => this.#gone.promise,
    } as unknown as Connection;
  }

  /** A register or heartbeat is sent to acceptance. */
  request(type: "agent.register" | "agent.heartbeat" = "agent.register"): void {
    this.registrar.requested(this.connection, verified(type));
  }

  /** Acceptance answers it. */
  answer(acceptance: Acceptance, type: "agent.register" | "agent.heartbeat" = "agent.register"): void {
    const refuse = ({ outcome }: Acceptance) => this.sent.push({ refused: outcome });
    this.registrar.answered(this.connection, verified(type), acceptance, refuse);
  }

  /** A heartbeat that was gathered is answered. */
  heard(answer: PresenceAcceptance | Unavailable): void {
    const refuse = ({ outcome }: Acceptance) => this.sent.push({ refused: outcome });
    this.registrar.heard(this.connection, verified("agent.heartbeat"), answer, refuse);
  }

  /** Its client ends the connection. */
  leave(): void {
    this.#gone.resolve();
  }

  /** What was published to the pod before comes in. */
  async catchUp(): Promise<void> {
    this.#caughtUp.resolve();
    await this.#caughtUp.promise;
  }

  /** The notice of a takeover by another connection comes in. */
  takeOver(epoch: number): void {
    this.registrar.superseded(this.connection, AGENT, epoch);
  }
}

/** The agent is online on this connection. */
export function online(epoch: number | null, changes: Partial<PresenceAcceptance> = {}): PresenceAcceptance {
  const nothing = { pending: [], decided: [] };
  return {
    outcome: "accepted",
    about: "presence",
    status: "online",
    lastSeen: 1,
    heardAt: 1,
    epoch,
    ...nothing,
    ...changes,
  };
}
