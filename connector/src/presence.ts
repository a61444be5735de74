import type { Clock } from "./clock.ts";
import type { Credential } from "./credentials/read-credential.ts";
import type { Signer } from "./signer.ts";
import { draftOf } from "./wire-mapping.ts";

export type PresenceType = "agent.register" | "agent.heartbeat";

/** What an agent registers with. */
export interface Registration {
  readonly signer: Signer;
  /** What makes its key known; undefined where the relay lists the key. */
  readonly credential: Credential | undefined;
}

export interface PresenceOptions {
  readonly agent: string;
  /** The host, with a port that is not the default, that this agent dialled. */
  readonly relay: string;
  /** Undefined for everyone. */
  readonly acceptFrom: readonly string[] | undefined;
  readonly clock: Clock;
  /** Rejects where no register may go out. @param register makes the text of the one that is to. */
  readonly beforeRegister: (register: () => Promise<string>) => Promise<void>;
  /** What a connection is to be registered with, in this order: what comes last signs from then on. */
  readonly registrations: () => readonly Registration[];
  /** A register with it goes out. */
  readonly presented: (registration: Registration) => void;
}

/** A register or heartbeat, signed. */
export interface SignedPresence {
  readonly id: string;
  readonly text: string;
  /** Of a register. */
  readonly registration: Registration | undefined;
}

/** Of no use to whoever sees it at another relay, or on another connection. Source: docs/protocol.md#destination. */
interface Destination {
  readonly relay: string;
  readonly connection_id?: string;
}

/** So many keys of an agent hold on a connection, those of its last registers. Source: docs/protocol.md#credentials. */
const KEYS_HELD = 2;

/** Makes one connection's registers and heartbeats, and knows which keys the relay accepted on it. */
export class Presence {
  readonly #options: PresenceOptions;
  /** Of each key the last that was accepted, the newest at the end. */
  #accepted: readonly Registration[] = [];
  readonly #answered = new WeakSet<Registration>();

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  /** What signs on this connection: the key of the last accepted register. There is one after that. */
  get signer(): Signer {
    return this.#newest.signer;
  }

  /** False while there is something to register with that has no answer yet. */
  get isComplete(): boolean {
    return this.#answered.has(this.#last);
  }

  /** True for a key whose envelopes the relay takes on this connection now. */
  accepts(keyId: string): boolean {
    const now = this.#options.clock.now();
    return this.#accepted.some(
      ({ signer, credential }) => signer.keyId === keyId && (credential === undefined || credential.expiresAt > now),
    );
  }

  /** @param connectionId of the connection that it goes out on. */
  async sign(type: PresenceType, connectionId: string | undefined): Promise<SignedPresence> {
    const destination = { relay: this.#options.relay, ...(connectionId && { connection_id: connectionId }) };
    if (type === "agent.heartbeat") return await this.#signed(type, this.signer, destination);
    await this.#options.beforeRegister(async () => (await this.#register(destination)).text);
    return await this.#register(destination);
  }

  accepted(registration: Registration): void {
    this.#answered.add(registration);
    const others = this.#accepted.filter(({ signer }) => signer.keyId !== registration.signer.keyId);
    this.#accepted = [...others, registration].slice(-KEYS_HELD);
  }

  /** @returns true for one that another follows: the agent does without it. */
  isDispensable(registration: Registration | undefined): boolean {
    if (registration === undefined || registration === this.#last) return false;
    this.#answered.add(registration);
    return true;
  }

  get #newest(): Registration {
    return this.#accepted.at(-1) as Registration;
  }

  get #last(): Registration {
    return this.#options.registrations().at(-1) as Registration;
  }

  async #register(destination: Destination): Promise<SignedPresence> {
    const registration = this.#options.registrations().find((each) => !this.#answered.has(each)) ?? this.#last;
    const { signer, credential } = registration;
    this.#options.presented(registration);
    const { acceptFrom } = this.#options;
    const payload = {
      ...destination,
      ...(credential && { credential: credential.token }),
      ...(acceptFrom && { accept_from: acceptFrom }),
    };
    return await this.#signed("agent.register", signer, payload, registration);
  }

  async #signed(type: PresenceType, signer: Signer, payload: object, registration?: Registration) {
    const id = crypto.randomUUID();
    const { text } = await signer.sign(signer.draft(draftOf({ type, payload }, id, this.#options.agent)));
    return { id, text, registration };
  }
}
