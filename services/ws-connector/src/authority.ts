import type { ReleaseReason } from "protocol/contract/credential.ts";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import { isCredentialKey, type KnownKeys } from "protocol/intake/credential-step.ts";
import type { VerifiedEnvelope } from "protocol/intake/steps.ts";
import { keyIdOf } from "protocol/signing/key-ring.ts";
import type { KeyStore } from "runtime/key-store.ts";
import type { Acceptance, KeptCredential } from "window/acceptance/acceptance.ts";
import type { Connection } from "./connection.ts";
import { ConnectionCredentials } from "./connection-credentials.ts";

/**
 * What allows a connection to act for its agents: the keys file, and the credentials that its registers brought.
 * Source: docs/protocol.md#keys, docs/protocol.md#credentials.
 */
export class Authority {
  readonly #keys: KeyStore;
  readonly #hosts: ReadonlySet<string>;
  /** When agents were released, Unix ms: their client goes on for a moment, in good faith. */
  readonly #releasedAt = new WeakMap<Connection, Map<string, number>>();

  /** @param options.hosts the names of this relay, which a register with a credential may be meant for. */
  constructor(options: { keys: KeyStore; hosts: ReadonlySet<string> }) {
    this.#keys = options.keys;
    this.#hosts = options.hosts;
  }

  /** What an envelope of the connection may be signed with. */
  keysOf({ credentials }: Connection): KnownKeys {
    const { ring } = this.#keys;
    return { ring, hosts: this.#hosts, credentialKey: (keyId, now) => credentials?.keyOf(keyId, ring, now) };
  }

  /** A register goes to acceptance. */
  presented(connection: Connection, { credential }: VerifiedEnvelope): void {
    if (credential === undefined) return;
    connection.credentials ??= new ConnectionCredentials();
    connection.credentials.presented(credential);
  }

  /** Acceptance answered a register. Without an answer it may have been accepted, and stays presented. */
  answered({ credentials }: Connection, { credential }: VerifiedEnvelope, acceptance: Acceptance): void {
    if (credential === undefined || credentials === undefined) return;
    const isGranted = "about" in acceptance && acceptance.about === "presence" && acceptance.epoch !== null;
    const isUnanswered = acceptance.outcome === "unavailable" && acceptance.sent !== false;
    if (isGranted) credentials.accepted(credential);
    else if (!isUnanswered) credentials.refused(credential);
  }

  /** What is kept of the credentials of a register's or heartbeat's agent; undefined where its key is listed. */
  keptCredential(
    connection: Connection,
    { envelope, keyId, credential }: VerifiedEnvelope,
  ): KeptCredential | undefined {
    const expiresAt = this.credentialEnd(connection, keyId, envelope.from);
    if (expiresAt === undefined) return undefined;
    return { expiresAt, presented: credential && { keyId, token: credential.token } };
  }

  /** Unix ms at which the agent's last credential ends; undefined where the key is listed. */
  credentialEnd({ credentials }: Connection, keyId: string, agent: string): number | undefined {
    return isCredentialKey(keyId) ? credentials?.lastEnd(agent, this.#keys.ring) : undefined;
  }

  /** True when a key, or another credential of the agent, allows it now. @param key its identity in the key ring. */
  mayAct({ credentials }: Connection, key: string, agent: string): boolean {
    const { ring } = this.#keys;
    const now = Date.now();
    if (!isCredentialKey(keyIdOf(key))) return ring.mayAct(key, agent, now);
    return credentials?.mayAct(agent, ring, now) ?? false;
  }

  /** True when the principal may bring agents that nobody listed one by one. */
  hasNamespace({ keyId, issuer }: VerifiedEnvelope): boolean {
    return issuer !== undefined || this.#keys.ring.hasNamespace(keyId, Date.now());
  }

  /** Its agent is released. @returns why. */
  released(connection: Connection, agent: string): ReleaseReason {
    const { credentials } = connection;
    const problem = credentials?.problemOf(agent, this.#keys.ring, Date.now());
    credentials?.forget(agent);
    const releasedAt = this.#releasedAt.get(connection) ?? new Map<string, number>();
    this.#releasedAt.set(connection, releasedAt.set(agent, Date.now()));
    return problem ?? "key_revoked_or_expired";
  }

  wasReleasedLately(connection: Connection, agent: string | undefined): boolean {
    const releasedAt = agent === undefined ? undefined : this.#releasedAt.get(connection)?.get(agent);
    return releasedAt !== undefined && Date.now() - releasedAt <= CONNECTION_LIMITS.releaseGraceMs;
  }
}
