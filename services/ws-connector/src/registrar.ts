import type { Envelope } from "@agent-relay/shared/contract/envelope.ts";
import { CLOSE_CODES } from "@agent-relay/shared/contract/errors.ts";
import type { VerifiedEnvelope } from "@agent-relay/shared/intake/steps.ts";
import type { KeyStore } from "@agent-relay/shared/signing/key-store.ts";
import type { Acceptance, PresenceAcceptance } from "@agent-relay/shared/window/acceptance.ts";
import type { RouteReleaser } from "@agent-relay/shared/window/routes.ts";
import type { Connection } from "./connection.ts";
import { pendingSessionsNotice, presenceAck, supersededNotice } from "./frames.ts";
import type { PodChannel } from "./pod-channel.ts";

const UNANSWERED: Acceptance = { outcome: "unavailable" };

/**
 * Who owns which agent, as this pod knows it: takes up what acceptance says of registers and heartbeats, and gives up
 * what another connection took, a key no longer allows, or a close leaves behind. Source: protocol, sections 4 and 6.
 */
export class Registrar {
  readonly #keys: KeyStore;
  readonly #channel: PodChannel;
  readonly #releaser: RouteReleaser;

  constructor(options: { keys: KeyStore; channel: PodChannel; releaser: RouteReleaser }) {
    this.#keys = options.keys;
    this.#channel = options.channel;
    this.#releaser = options.releaser;
  }

  /** False while no delivery could reach this pod: then it takes no agent from a connection that others reach. */
  get canTakeAgents(): boolean {
    return this.#channel.ready;
  }

  /**
   * Takes up the answer to a register or heartbeat.
   * @param refuse answers the connection with any other outcome than a presence.
   */
  settle(
    connection: Connection,
    verified: VerifiedEnvelope,
    answer: Acceptance,
    refuse: (acceptance: Acceptance) => void,
  ): void {
    const { envelope, keyId } = verified;
    // No ack before deliveries to this connection flow: nobody is promised what no one listens for.
    const acceptance = this.#channel.ready || !isPresence(answer) ? answer : UNANSWERED;
    const isNews = acceptance.outcome === "accepted" || connection.agents.isDoubted(envelope.from);
    const takeover = this.#takeUp(connection, verified, acceptance);
    if (acceptance.outcome === "not_registered") void this.#concede(connection, envelope.from, acceptance.epoch);
    if (connection.isClosing) {
      this.releaseAll(connection);
      return;
    }
    if (!isPresence(acceptance)) refuse(acceptance);
    else this.#acknowledge(connection, envelope, isNews ? acceptance : { ...acceptance, waiting: [] });
    if (takeover !== null) this.#giveUp(connection, envelope.from, takeover);
    if (!this.#keys.ring.mayAct(keyId, envelope.from, Date.now())) this.audit(connection);
  }

  /** Another connection took an agent over. */
  supersede(connection: Connection, agent: string, epoch: number): void {
    const takeover = connection.agents.lose(agent, epoch);
    if (takeover !== null) this.#giveUp(connection, agent, takeover);
  }

  /** Releases the agents whose key no longer allows them; a connection left without any is closed. */
  audit(connection: Connection): void {
    const { ring } = this.#keys;
    const now = Date.now();
    const routes = connection.agents.dropUnless((keyId, agent) => ring.mayAct(keyId, agent, now));
    if (routes.length === 0) return;
    this.#releaser.release(routes);
    if (connection.agents.isEmpty) connection.close(CLOSE_CODES.keyRevoked);
  }

  /** Releases every agent of a connection that ends. */
  releaseAll(connection: Connection): void {
    const routes = connection.agents.dropUnless(() => false);
    if (routes.length > 0) this.#releaser.release(routes);
  }

  /** @returns the epoch of a takeover by another connection, when that is news, or null. */
  #takeUp({ agents }: Connection, { envelope, keyId }: VerifiedEnvelope, acceptance: Acceptance): number | null {
    if (acceptance.outcome === "unavailable") agents.doubt(envelope.from, keyId);
    return agents.end(envelope.from, isPresence(acceptance) ? acceptance.epoch : null, keyId);
  }

  /**
   * Redis says that another connection owns the agent. What was promised to this one before may still be on its way over
   * the channel, ahead of the notice of the takeover: the answer must not overtake it.
   */
  async #concede(connection: Connection, agent: string, epoch: number): Promise<void> {
    if (!connection.agents.owns(agent)) return;
    await this.#channel.caughtUp();
    this.supersede(connection, agent, epoch);
  }

  #acknowledge(connection: Connection, envelope: Envelope, presence: PresenceAcceptance): void {
    connection.noteValid();
    connection.send(presenceAck(envelope, presence));
    if (presence.waiting.length > 0) connection.send(pendingSessionsNotice(envelope.from, presence.waiting));
  }

  #giveUp(connection: Connection, agent: string, epoch: number): void {
    connection.send(supersededNotice(agent, epoch));
    if (connection.agents.isEmpty) connection.close(CLOSE_CODES.superseded);
  }
}

function isPresence(acceptance: Acceptance): acceptance is PresenceAcceptance {
  return "about" in acceptance && acceptance.about === "presence";
}
