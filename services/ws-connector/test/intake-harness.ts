import type { KeyStore } from "relay-runtime/key-store.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { KeyRefusals, Tally } from "relay-runtime/metrics/service-metrics.ts";
import { EnvelopeVerifier } from "relay-runtime/verification/envelope-verifier.ts";
import type { SignatureVerifier } from "relay-runtime/verification/signature-verifier.ts";
import type { Acceptance, AcceptanceItem, Prepared } from "relay-window/acceptance/acceptance.ts";
import type { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { KEYS, signed } from "../../../shared/protocol/test/intake/support.ts";
import { Authority } from "../src/agents/authority.ts";
import { type GatheredHeartbeat, type Heartbeats, IntakeBatch } from "../src/agents/heartbeats.ts";
import { Ownership } from "../src/agents/ownership.ts";
import type { Registrar } from "../src/agents/registrar.ts";
import type { Connection } from "../src/connection/connection.ts";
import { DecisionRepeats } from "../src/intake/decision-repeats.ts";
import { createIntake, type IntakeParts } from "../src/intake/intake.ts";
import { Responder } from "../src/intake/responder.ts";
import { NO_AUDIT, NO_TRACING } from "./registrar-harness.ts";

const BASE_URL = "https://relay.example";

/** The intake of one connection of alice's; of what is around it, only what checks and answers is real. */
export class IntakeHarness {
  /** Codes of the error frames. */
  readonly errors: string[] = [];
  /** What was sent to acceptance. */
  readonly accepting: AcceptanceItem[] = [];
  readonly gathered: GatheredHeartbeat[] = [];
  /** Who signed what was taken in, of agents that the connection has. */
  readonly signers: string[] = [];
  /** What the preparation of the last session envelope comes to. */
  readonly prepared = Promise.withResolvers<Acceptance | Prepared>();
  /** How often a preparation was asked for. */
  preparations = 0;
  /** Whether a release may take what the connection is granted now. */
  awaitsRelease = false;
  readonly keyRefusals = new KeyRefusals();
  readonly refusals = new Tally();
  /** How long each ack took, in seconds. */
  readonly acks: number[] = [];
  readonly log: string[] = [];
  readonly connection: Connection;
  readonly parts: IntakeParts;

  constructor(verifier: SignatureVerifier) {
    this.connection = {
      agents: new Ownership("con_1"),
      isClosing: false,
      allAnswered: () => Object.assign(this.connection, { intake: undefined }),
      noteValid: () => {},
      noteRefusal: () => {},
      noteSigner: (principal: string, agent: string) => this.signers.push(`${principal} ${agent}`),
      resume: () => {},
      send: (text: string) => this.errors.push(JSON.parse(text).code),
    } as unknown as Connection;
    const authority = new Authority({ keys: KEYS as unknown as KeyStore, hosts: new Set() });
    this.parts = {
      authority,
      verifier: new EnvelopeVerifier(verifier),
      acceptor: {
        accept: (item: AcceptanceItem) => this.accepting.push(item),
        needsPreparation: ({ kind }: Pick<AcceptanceItem, "kind">) => kind !== "message",
        prepare: () => {
          this.preparations += 1;
          return this.prepared.promise;
        },
      } as unknown as Acceptor,
      decisionRepeats: new DecisionRepeats({ accept: (item) => this.accepting.push(item) }),
      registrar: {
        canTake: () => true,
        awaitsRelease: () => this.awaitsRelease,
        requested: () => {},
        answered: () => {},
        heard: () => {},
      } as unknown as Registrar,
      heartbeats: { gather: (heartbeat: GatheredHeartbeat) => this.gathered.push(heartbeat) } as unknown as Heartbeats,
      batch: new IntakeBatch({ logger: createLogger({ service: "test", level: "silent" }) }),
      tracing: NO_TRACING,
      acks: { observe: (seconds: number) => void this.acks.push(seconds) },
      responder: new Responder({
        authority,
        counters: { refusals: this.refusals, keyRefusals: this.keyRefusals },
        audit: NO_AUDIT,
        baseUrl: BASE_URL,
        logger: createLogger({ service: "test", level: "error" }, { write: (line) => void this.log.push(line) }),
      }),
    };
  }

  receive(envelope: object): void {
    createIntake(this.parts)(this.connection, JSON.stringify(envelope));
  }
}

/** A register of alice's. */
export const register = (id: string) => signed({ id, type: "agent.register", payload: {}, ts: Date.now() });
