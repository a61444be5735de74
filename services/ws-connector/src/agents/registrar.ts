import type { VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import type { AuditLog } from "relay-runtime/audit-log.ts";
import type { Acceptance, PresenceAcceptance, Unavailable } from "relay-window/acceptance/acceptance.ts";
import type { PodChannel } from "relay-window/channel/pod-channel.ts";
import { acceptFromOf, principalNameOf, principalOf } from "relay-window/limits/principals.ts";
import type { Route, RouteReleaser } from "relay-window/presence/routes.ts";
import type { Connection } from "../connection/connection.ts";
import {
  decidedSessionsNotice,
  pendingSessionsNotice,
  presenceAck,
  releasedNotice,
  supersededNotice,
} from "../connection/frames.ts";
import type { Authority } from "./authority.ts";
import type { Heartbeats, IntakeBatch } from "./heartbeats.ts";
import type { AgentEvent } from "./ownership.ts";

/**
 * For each agent, the connection of this pod that last got the agent. Late deliveries to other connections go there.
 */
export class AgentConnections {
  readonly #byAgent = new Map<string, Connection>();

  /** The number of agents. */
  get size(): number {
    return this.#byAgent.size;
  }

  granted(agent: string, connection: Connection): void {
    this.#byAgent.set(agent, connection);
  }

  /** The connection does not have the agent any more. */
  lost(agent: string, connection: Connection): void {
    if (this.#byAgent.get(agent) === connection) this.#byAgent.delete(agent);
  }

  /** The connection that has taken the agent since that epoch. */
  takenAfter(agent: string, epoch: number): Connection | undefined {
    const connection = this.#byAgent.get(agent);
    return (connection?.agents.ownedAgent(agent)?.epoch ?? 0) > epoch ? connection : undefined;
  }
}

/** Answers are due within a second. No caller waits longer for a missing answer. */
const SETTLED_WITHIN_MS = 1500;

/**
 * Keeps each connection's ownership as Redis decides. Applies the answers to registers and heartbeats, and takeovers by
 * other connections. Releases the agents that a key no longer allows, and the agents of a connection that ends. Source:
 * docs/protocol.md#keys, docs/protocol.md#frames.
 */
export class Registrar {
  readonly #authority: Authority;
  readonly #channel: PodChannel;
  readonly #releaser: RouteReleaser;
  readonly #heartbeats: Heartbeats;
  readonly #batch: IntakeBatch;
  readonly #agentConnections: AgentConnections;
  readonly #audit: AuditLog;
  /** Callers of `settled`. */
  readonly #settling = new Map<Connection, () => void>();

  constructor(options: {
    authority: Authority;
    channel: PodChannel;
    releaser: RouteReleaser;
    heartbeats: Heartbeats;
    batch: IntakeBatch;
    agentConnections: AgentConnections;
    audit: AuditLog;
  }) {
    this.#authority = options.authority;
    this.#channel = options.channel;
    this.#releaser = options.releaser;
    this.#heartbeats = options.heartbeats;
    this.#batch = options.batch;
    this.#agentConnections = options.agentConnections;
    this.#audit = options.audit;
  }

  /**
   * False while no delivery to the agent could reach this pod: it must not take the agent from a connection that gets
   * deliveries. Also false once the pod drains the connection, so that no request brings a released route back.
   */
  canTake(connection: Connection, agent: string): boolean {
    return this.#channel.isReadyFor(agent) && !connection.isDraining;
  }

  /**
   * True if a release that is still being sent would remove the route that this envelope writes. A register has a new
   * epoch, so only a release of any epoch would.
   */
  awaitsRelease(connection: Connection, { kind, envelope }: Pick<VerifiedEnvelope, "kind" | "envelope">): boolean {
    if (kind === "heartbeat" && connection.agents.mayOwn(envelope.from)) return false;
    const release = this.#releaser.unreleased(envelope.from, connection.id);
    return release !== undefined && (kind === "heartbeat" || release.epoch === null);
  }

  /** A register or heartbeat of the agent goes to acceptance, after the agent's gathered heartbeats. */
  requested(connection: Connection, verified: VerifiedEnvelope): void {
    this.#heartbeats.flushOf(connection, verified.envelope.from);
    connection.agents.apply(verified.envelope.from, { kind: "requested" });
    this.#authority.presented(connection, verified);
  }

  /**
   * Applies the answer of acceptance to a register or heartbeat.
   * @param refuse answers the client if the outcome is not a presence.
   */
  answered(
    connection: Connection,
    verified: VerifiedEnvelope,
    answer: Acceptance,
    refuse: (acceptance: Acceptance) => void,
  ): void {
    const { envelope, key } = verified;
    const { agents } = connection;
    const agent = envelope.from;
    const acceptance = this.#unlessUnreached(agent, answer);
    // A repeat brings the notices of sessions again only if its first answer may not have arrived.
    const isNew = acceptance.outcome === "accepted" || agents.isOutcomeUnknown(agent);
    this.#authority.answered(connection, verified, acceptance);
    const event = eventOf(acceptance, key, isNew ? verified : undefined);
    const supersededBy = agents.apply(agent, event);
    if (event.kind === "granted") this.#agentConnections.granted(agent, connection);
    if (event.kind === "granted" && isNew && verified.kind === "register") this.#auditRegister(verified, event.epoch);
    if (!agents.mayOwn(agent)) this.#lost(connection, agent);
    const settled = this.#settling.get(connection);
    if (settled !== undefined && !agents.hasPending) settled();
    if (acceptance.outcome === "not_registered") void this.supersedeInOrder(connection, agent, acceptance.epoch);
    if (connection.isClosing) {
      this.releaseAll(connection);
      return;
    }
    if (!isPresence(acceptance)) refuse(acceptance);
    else this.#acknowledge(connection, verified, isNew ? acceptance : { ...acceptance, pending: [], decided: [] });
    if (supersededBy !== null) this.#tellSuperseded(connection, agent, supersededBy);
    if (!this.#authority.mayAct(connection, key, agent)) this.releaseRevoked(connection, envelope);
  }

  /** Applies the answer to a gathered heartbeat. @param refuse as in `answered`. */
  heard(
    connection: Connection,
    verified: VerifiedEnvelope,
    answer: PresenceAcceptance | Unavailable,
    refuse: (acceptance: Acceptance) => void,
  ): void {
    const agent = verified.envelope.from;
    const heard = this.#unlessUnreached(agent, answer);
    const { epoch, heardAt } = isPresence(heard) ? heard : {};
    if (epoch && heardAt) connection.agents.apply(agent, { kind: "heard", epoch, heardAt });
    if (connection.isClosing) return;
    if (!isPresence(heard)) refuse(heard);
    // The client already knows that the connection lost the agent.
    else if (!connection.agents.owns(agent)) refuse({ outcome: "not_registered", epoch: heard.epoch ?? 0 });
    else this.#acknowledge(connection, verified, heard);
  }

  /** Resolves when no register or heartbeat of the connection waits for its answer, at most after SETTLED_WITHIN_MS. */
  async settled(connection: Connection): Promise<void> {
    const late = new Promise<void>((resolve) => setTimeout(resolve, SETTLED_WITHIN_MS).unref());
    await Promise.race([this.#heartbeats.settled(connection), late]);
    if (!connection.agents.hasPending) return;
    await Promise.race([new Promise<void>((resolve) => this.#settling.set(connection, resolve)), late]);
    this.#settling.delete(connection);
  }

  /** Another connection took over an agent. */
  superseded(connection: Connection, agent: string, epoch: number): void {
    // Take in earlier heartbeats first, so that they do not take the agent back.
    this.#batch.flush();
    const supersededBy = connection.agents.apply(agent, { kind: "superseded", epoch });
    if (!connection.agents.mayOwn(agent)) this.#lost(connection, agent);
    if (supersededBy !== null) this.#tellSuperseded(connection, agent, supersededBy);
  }

  /**
   * Releases the agents whose keys and credentials no longer allow them. Closes a connection that has no agents left.
   * @param answered the envelope that was just answered. A heartbeat under way during a release takes its agent once
   * more. Its client already knows of the release, and gets no second notice.
   */
  releaseRevoked(connection: Connection, answered?: Pick<Envelope, "type" | "from">): void {
    const isAllowed = (key: string, agent: string) => this.#authority.mayAct(connection, key, agent);
    if (connection.agents.areAllowed(isAllowed)) return;
    this.#heartbeats.flushOf(connection);
    const routes = connection.agents.releaseUnless(isAllowed);
    this.#release(connection, routes);
    for (const { agent } of routes) {
      const isLate = answered?.type === "agent.heartbeat" && answered.from === agent;
      const isTold = isLate && this.#authority.hasReleased(connection, agent);
      const reason = this.#authority.released(connection, agent);
      this.#audit.write({ event: "released", agent, reason });
      if (!isTold) connection.send(releasedNotice(agent, reason));
    }
    if (connection.agents.isEmpty) connection.close(CLOSE_CODES.keyRevoked);
  }

  /** Releases every agent of a connection that ends. */
  releaseAll(connection: Connection): void {
    this.#heartbeats.flushOf(connection);
    const routes = connection.agents.releaseAll();
    if (routes.length > 0) this.#release(connection, routes);
  }

  /**
   * A refused heartbeat or restore tells of a takeover before the channel does. Earlier deliveries to this connection
   * may still be in the channel. They come first.
   */
  async supersedeInOrder(connection: Connection, agent: string, epoch: number): Promise<void> {
    if (!connection.agents.owns(agent)) return;
    await this.#channel.caughtUp(agent);
    this.superseded(connection, agent, epoch);
  }

  #release(connection: Connection, routes: readonly Route[]): void {
    for (const { agent } of routes) this.#agentConnections.lost(agent, connection);
    this.#releaser.release(routes);
  }

  /** The connection does not own the agent, and no missing answer may change that. */
  #lost(connection: Connection, agent: string): void {
    this.#agentConnections.lost(agent, connection);
    this.#authority.lost(connection, agent);
  }

  /**
   * While the channel is down, no delivery reaches this connection. So the pod acknowledges none of its agents as
   * online.
   */
  #unlessUnreached(agent: string, answer: Acceptance): Acceptance {
    return this.#channel.isReadyFor(agent) || !isPresence(answer) ? answer : { outcome: "unavailable" };
  }

  /** The pod also acknowledges the repeat of another connection's register. It proves nothing about this connection. */
  #acknowledge(connection: Connection, verified: VerifiedEnvelope, presence: PresenceAcceptance): void {
    const { envelope, keyId } = verified;
    if (presence.epoch !== null) connection.noteValid(principalOf(verified), envelope.from);
    connection.send(presenceAck(envelope, presence, this.#authority.credentialEnd(connection, keyId, envelope.from)));
    const { pending, decided } = presence;
    if (pending.length > 0) connection.send(pendingSessionsNotice(envelope.from, pending));
    if (decided.length > 0) connection.send(decidedSessionsNotice(envelope.from, decided));
  }

  #auditRegister(verified: VerifiedEnvelope, epoch: number): void {
    const name = principalNameOf(principalOf(verified));
    const { from: agent } = verified.envelope;
    this.#audit.write({ event: "registered", agent, ...name, key_id: verified.keyId, epoch });
  }

  #tellSuperseded(connection: Connection, agent: string, epoch: number): void {
    this.#audit.write({ event: "taken_over", agent, epoch });
    connection.send(supersededNotice(agent, epoch));
    if (connection.agents.isEmpty) connection.close(CLOSE_CODES.superseded);
  }
}

function isPresence(acceptance: Acceptance): acceptance is PresenceAcceptance {
  return "about" in acceptance && acceptance.about === "presence";
}

/**
 * The event that an answer means for the ownership of the agent.
 * @param verified the envelope if it was accepted just now, or may have been.
 */
function eventOf(acceptance: Acceptance, key: string, verified: VerifiedEnvelope | undefined): AgentEvent {
  if (acceptance.outcome === "unavailable" && acceptance.done !== false) return { kind: "unanswered", key };
  if (!isPresence(acceptance)) return { kind: "not_granted" };
  const { epoch, heardAt } = acceptance;
  if (epoch === null || heardAt === null) return { kind: "not_granted" };
  const acceptFrom = verified?.kind === "register" ? acceptFromOf(verified.envelope.payload) : acceptance.acceptFrom;
  return { kind: "granted", epoch, key, heardAt, acceptFrom };
}
