/** What an attacker is told of the relay, and what it has been given; travels to its process. */
export interface Target {
  /** Ports of the services. */
  readonly connectors: readonly [number, number];
  readonly gateway: number;
  /** A gateway that may open few files. */
  readonly smallGateway: number;
  readonly reports: number;
  /** How long the attack goes on. */
  readonly forMs: number;
  /** By name: a key for the agents `agent://<name>.*`. */
  readonly keys: Readonly<Record<string, AttackerKey>>;
  /** JWK of the private key of `ISSUER`. */
  readonly issuerKey: object;
  /** Each for one agent: `agent://<name>.*` of `API_KEY_AGENTS`. */
  readonly apiKeys: readonly string[];
  /** What makes the addresses that clients come from; another one for each attack. */
  readonly network: number;
}

/** What one of the gateways may open. */
export const FEW_FILES = 1200;

export interface AttackerKey {
  readonly keyId: string;
  /** base64url seed of an Ed25519 key. */
  readonly seed: string;
}

/** How much an attack was, and what the attacker saw that must not be. */
export interface Attacked {
  readonly connections: number;
  /** Websocket frames or HTTP requests. */
  readonly frames: number;
  readonly bytes: number;
  readonly faults: readonly string[];
}

/** Makes ready what the attack needs, and resolves with its launch. In the attacker's process. */
export type Attacker = (target: Target) => Promise<Launch>;
export type Launch = () => Promise<Attacked>;

/** What the attacker's process is told: which attack, and then that it begins. */
export type Order =
  | { readonly order: "prepare"; readonly name: string; readonly target: Target }
  | { readonly order: "launch" };

/** What an attack was, and what it cost the attacker. */
export interface Launched {
  readonly attacked: Attacked;
  readonly cpuSeconds: number;
}

/** Names of those who take part: agents `agent://<name>`, and namespaces `agent://<name>.*` of attackers. */

/** Two who exchange; who waits for an absent one; two who negotiate; whose key is replaced; who comes only when Redis is full. */
export const BYSTANDERS = ["ann", "ben", "cora", "dina", "eli", "finn", "gwen"] as const;
/** Never online. */
export const ABSENT = "agent://nobody.is.here";
/** Whose API keys attackers have. */
export const API_KEY_AGENTS = "callers";
/** Senders to one slow reader, each with a key of its own. */
export const SENDERS = Array.from({ length: 10 }, (_, n) => `sender-${n}`);
/** One key for each attack that needs one, so that no attack uses up what another may. */
export const ATTACKERS = [
  "rate",
  "sessions",
  "pending",
  "reader",
  "crowd",
  "takeovers",
  "fragments",
  "pings",
  "manypings",
  "manytexts",
  "bytes",
  "burst",
  "displacing",
  ...SENDERS,
] as const;
/** An issuer of agents `agent://<issuer>.*`, all of them an attacker's. */
export const ISSUER = "legion";
/** The relay, for who registers with a credential. */
export const RELAY_HOST = "relay.example";

/** Says where a client comes from, as the edge does. */
export const FORWARDED = "X-Forwarded-For";
/** Where bystanders come from. */
export const BYSTANDERS_ADDRESS = "198.51.100.10";

/** The n-th address of an attacker's network, each of a /64 of its own. Source: RFC 3849. */
export function addressOf(network: number, n: number): string {
  return `2001:db8:${network.toString(16)}:${(n % 65_536).toString(16)}::1`;
}
