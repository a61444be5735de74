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

/** What the attacker's process is told first; any further message is the launch. */
export interface Order {
  /** Of the attack. */
  readonly name: string;
  readonly target: Target;
}

/** What an attack was, and what it cost the attacker. */
export interface Launched {
  readonly attacked: Attacked;
  readonly cpuSeconds: number;
}
