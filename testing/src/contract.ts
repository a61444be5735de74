/** What tests get. */

/** An agent with its keys, as a connector takes it: `new Connector(await relay.agent("alice"))`. */
export interface TestAgent {
  /** Base address of the relay. */
  readonly url: string;
  /** `agent://alice`. */
  readonly agent: string;
  readonly key: { readonly keyId: string; readonly alg: "ed25519"; readonly privateKey: string };
  /** The relay's issuer vouches for the key; every agent of the relay pins it, so that deliveries are `verified: "agent"`. */
  readonly credential: string;
  readonly sealingKeys: readonly { readonly publicKey: string; readonly privateKey: string }[];
  readonly trust: { readonly issuers: readonly TestIssuer[] };
  /** Path of a key file with all of it, for `relay --key` and the connector for Python; it is there until the relay stops. */
  readonly keyFile: string;
}

/** The record of an issuer: docs/protocol.md#credentials. */
export interface TestIssuer {
  readonly issuer: string;
  readonly keys: readonly { readonly public_key: string }[];
  readonly agents: readonly string[];
}

/** A relay in this process. */
export interface TestRelay {
  /** Base address, `http://127.0.0.1:<port>`. */
  readonly url: string;
  /** Address of the websocket, for clients that are no connector. */
  readonly websocketUrl: string;
  /** For the header `x-api-key` of the gateway: sends as agent://alice or agent://alice.*. */
  readonly apiKey: string;
  /** @param name `alice` for agent://alice. The same name gives the same agent. */
  agent(name: string): Promise<TestAgent>;
  /** Ends it and removes what was made for it. Idempotent. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface RelayOptions {
  /** Settings by their names, as README.md#settings lists them. `REDIS_URL` is that of the process, unless it is here. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** On a Redis Cluster of its own, six processes on loopback, with two pods; `REDIS_URL` is not looked at. */
  readonly cluster?: boolean | undefined;
}
