import { isCredentialKey, type KnownKeys } from "relay-protocol/intake/credential-step.ts";
import type { VerifiedEnvelope } from "relay-protocol/intake/steps.ts";
import { keyIdOf } from "relay-protocol/signing/key-ring.ts";
import type { ReleaseReason } from "relay-protocol/wire/credential.ts";
import type { ErrorCode } from "relay-protocol/wire/errors.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { Acceptance, KeptCredential } from "relay-window/acceptance/acceptance.ts";
import { type AgentPrincipal, principalOf } from "relay-window/limits/principals.ts";
import type { HeldCredentials } from "relay-window/presence/held-routes.ts";
import type { Connection } from "../connection/connection.ts";
import { ConnectionCredentials } from "./credentials.ts";

/**
 * Refusals that do not count after one release: the envelopes that a client may have under way. Another agent may have
 * the same key.
 */
const MOST_FORGIVEN = 256;
const FORGIVEN: ReadonlySet<ErrorCode> = new Set(["unknown_key", "key_not_allowed", "not_registered"]);

interface Release {
  /** Unix ms. */
  readonly at: number;
  readonly reason: ReleaseReason;
  forgiven: number;
}

/**
 * Decides if a connection may act for its agents: by the keys file, and by the credentials that its registers brought.
 * Source: docs/protocol.md#keys, docs/protocol.md#credentials.
 */
export class Authority {
  readonly #keys: KeyStore;
  /** The hosts and keys that every connection judges envelopes by. */
  readonly known: KnownKeys;
  /** Recently released agents, by connection. Their client may still send for a moment, in good faith. */
  readonly #releases = new WeakMap<Connection, Map<string, Release>>();

  /** @param options.hosts the names of this relay that a register may be meant for. */
  constructor(options: { keys: KeyStore; hosts: ReadonlySet<string> }) {
    const { keys, hosts } = options;
    this.#keys = keys;
    this.known = {
      hosts,
      get ring() {
        return keys.ring;
      },
    };
  }

  /** A register goes to acceptance. */
  presented(connection: Connection, { credential }: VerifiedEnvelope): void {
    if (credential === undefined) return;
    connection.credentials ??= new ConnectionCredentials();
    connection.credentials.presented(credential);
  }

  /**
   * Acceptance answered a register. Without an answer the register may have been accepted, so its credential stays
   * presented.
   */
  answered({ credentials }: Connection, { credential }: VerifiedEnvelope, acceptance: Acceptance): void {
    if (credential === undefined || credentials === undefined) return;
    const isGranted = "about" in acceptance && acceptance.about === "presence" && acceptance.epoch !== null;
    const isUnanswered = acceptance.outcome === "unavailable" && acceptance.done !== false;
    if (isGranted) credentials.accepted(credential);
    else if (!isUnanswered) credentials.refused(credential);
  }

  /** The record of the agent's credentials for a register or heartbeat. Undefined if the agent's key is listed. */
  keptCredential(
    connection: Connection,
    { envelope, keyId, credential: presented }: VerifiedEnvelope,
  ): KeptCredential | undefined {
    const expiresAt = this.credentialEnd(connection, keyId, envelope.from);
    if (expiresAt === undefined) return undefined;
    return { expiresAt, presented };
  }

  /**
   * Unix ms: when the agent's last credential ends. Undefined if the key is listed, or the connection holds no
   * credential.
   */
  credentialEnd({ credentials }: Connection, keyId: string, agent: string): number | undefined {
    return isCredentialKey(keyId) ? credentials?.lastEnd(agent, this.#keys.ring) : undefined;
  }

  /** The agent's credentials that are valid now. Undefined if its key is listed. */
  heldCredentials({ credentials }: Connection, agent: string): HeldCredentials | undefined {
    return credentials?.holding(agent, this.#keys.ring, Date.now());
  }

  /** False for a credential key that the connection does not hold, or no longer holds, for the agent. */
  knows({ credentials }: Connection, keyId: string, agent: string): boolean {
    if (!isCredentialKey(keyId)) return true;
    return credentials?.keyOf(keyId, agent, this.#keys.ring, Date.now())?.mayAct(agent) ?? false;
  }

  /**
   * True if the key, or another credential of the agent, allows the agent now. @param key its identity in the key ring.
   */
  mayAct({ credentials }: Connection, key: string, agent: string): boolean {
    const { ring } = this.#keys;
    const now = Date.now();
    if (!isCredentialKey(keyIdOf(key))) return ring.mayAct(key, agent, now);
    return credentials?.mayAct(agent, ring, now) ?? false;
  }

  /** True if the principal may bring agents that the keys file does not list one by one. */
  hasNamespace({ keyId, issuer }: Pick<VerifiedEnvelope, "keyId" | "issuer">): boolean {
    return issuer !== undefined || this.#keys.ring.hasNamespace(keyId, Date.now());
  }

  /** True if the key or issuer of an envelope may also speak for its recipient. */
  speaksForTarget({ envelope, keyId, issuer }: VerifiedEnvelope): boolean {
    return this.#keys.ring.speaksFor({ keyId, issuer }, envelope.to ?? "", Date.now());
  }

  /** The principal that registered an agent of a connection. @param key its identity in the key ring. */
  principalOfAgent({ credentials }: Connection, key: string, agent: string): AgentPrincipal {
    const keyId = keyIdOf(key);
    const signer = { keyId, issuer: isCredentialKey(keyId) ? credentials?.issuerOf(agent) : undefined };
    return { principal: principalOf(signer), hasNamespace: this.hasNamespace(signer) };
  }

  /** True if the agent was released from the connection a moment ago. */
  hasReleased(connection: Connection, agent: string): boolean {
    return this.#latelyOf(connection, Date.now()).has(agent);
  }

  /** The agent is released. @returns the reason. */
  released(connection: Connection, agent: string): ReleaseReason {
    const { credentials } = connection;
    const now = Date.now();
    const lately = this.#latelyOf(connection, now);
    const problem = credentials?.problemOf(agent, this.#keys.ring, now);
    const reason = problem ?? lately.get(agent)?.reason ?? "key_revoked_or_expired";
    credentials?.forget(agent);
    lately.set(agent, { at: now, reason, forgiven: 0 });
    return reason;
  }

  /** Another connection took the agent over. The agent's credentials are of no use here. */
  lost({ credentials }: Connection, agent: string): void {
    credentials?.forget(agent);
  }

  /** True for a refusal that does not count. The client may have sent the envelope before it knew of a release. */
  isForgiven(connection: Connection, code: ErrorCode, from: string | undefined): boolean {
    if (!FORGIVEN.has(code)) return false;
    const release = from === undefined ? undefined : this.#releases.get(connection)?.get(from);
    if (release === undefined || Date.now() - release.at > CONNECTION_LIMITS.releaseGraceMs) return false;
    release.forgiven += 1;
    return release.forgiven <= MOST_FORGIVEN;
  }

  #latelyOf(connection: Connection, now: number): Map<string, Release> {
    const lately = this.#releases.get(connection) ?? new Map<string, Release>();
    for (const [agent, { at }] of lately) if (now - at > CONNECTION_LIMITS.releaseGraceMs) lately.delete(agent);
    this.#releases.set(connection, lately);
    return lately;
  }
}
