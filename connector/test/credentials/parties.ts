import { freePorts } from "../../../deploy/local/free-ports.ts";
import { TestIssuer } from "../../../test/support/issuer.ts";
import { type Pod, serveWhole } from "../../../test/support/relay.ts";
import {
  type AgentKey,
  Connector,
  type ConnectorOptions,
  type IssuerRecord,
  type SealingKeyPair,
} from "../../src/index.ts";
import { Stage } from "../kit.ts";
import type { WireProxy } from "../wire-proxy.ts";
import { newKeys } from "./kit.ts";

/** An agent whose key stands in no file, and what its issuer signs for it. */
export interface Party {
  readonly agent: string;
  readonly key: AgentKey;
  readonly sealingKeys: readonly SealingKeyPair[];
  /** A new credential. @param claims in place of those that hold now for an hour. */
  token(claims?: object): Promise<string>;
}

export const acme = new TestIssuer("acme");
export const globex = new TestIssuer("globex");

/** As a recipient pins it, and as the relay's keys file has it. */
export const ACME = acme.record(["agent://acme.*"]) as IssuerRecord;
export const GLOBEX = globex.record(["agent://globex.*"]) as IssuerRecord;

export async function party(agent: string, issuer = issuerOf(agent)): Promise<Party> {
  const [keys, sealing] = [await newKeys(), await newKeys("X25519")];
  const cnf = { jwk: { kty: "OKP", crv: "Ed25519", x: keys.x } };
  const enc = { jwk: { kty: "OKP", crv: "X25519", x: sealing.x } };
  return {
    agent,
    key: { alg: "ed25519", privateKey: keys.d },
    sealingKeys: [{ publicKey: sealing.x, privateKey: sealing.d }],
    token: async (claims = {}) => (await issuer.agent(agent, { cnf, enc, ...claims })).credential,
  };
}

export const secondsFromNow = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

/** A relay that lists issuers and no key, and somebody in front of it who can lie. */
export class IssuerStage extends Stage {
  readonly pods: Pod[] = [];
  #front: WireProxy | undefined;
  readonly #parties: Connector[] = [];
  readonly #podCount: number;

  constructor(podCount = 1) {
    super();
    this.#podCount = podCount;
  }

  /** It tells the truth until a test says otherwise. */
  get front(): WireProxy {
    return this.#front as WireProxy;
  }

  get url(): string {
    return (this.pods[0] as Pod).url;
  }

  override async start(): Promise<void> {
    await super.start();
    await this.list([ACME, GLOBEX]);
    this.#front = await this.proxy("");
    const ports = await freePorts(this.#podCount);
    const hosts = [new URL(this.front.url).host, ...ports.map((port) => `127.0.0.1:${port}`)].join(",");
    for (const port of ports) {
      this.pods.push(await serveWhole(this.relay, { PORT: String(port), RELAY_PUBLIC_HOSTS: hosts }));
    }
    this.tellTheTruth();
  }

  /** The issuers of the keys file, from now on. */
  async list(issuers: readonly object[]): Promise<void> {
    await this.relay.writeKeys({ issuers });
  }

  tellTheTruth(): void {
    const truth = async (path: string) => {
      const answer = await fetch(`${this.url}${path}`);
      return answer.status === 200 ? await answer.text() : undefined;
    };
    this.front.lead(this.url);
    this.front.toAgent = (frame) => frame;
    this.front.toRelay = (envelope) => envelope;
    this.front.lookUp = truth;
    this.front.presence = async (path) => (await truth(path)) ?? "";
    this.front.manifest = async () => (await truth("/.well-known/signing-manifest.json")) ?? "";
  }

  /** Registered. */
  async join(
    { agent, key, sealingKeys, token }: Party,
    url: string,
    options: Partial<ConnectorOptions> = {},
  ): Promise<Connector> {
    const connector = new Connector({ url, agent, key, sealingKeys, credential: await token(), ...options });
    this.#parties.push(connector);
    await connector.start();
    return connector;
  }

  override async clear(): Promise<void> {
    await Promise.all(this.#parties.splice(0).map((connector) => connector.close()));
    this.tellTheTruth();
  }

  override async stop(): Promise<void> {
    await this.clear();
    await super.clear();
    await super.stop();
  }
}

function issuerOf(agent: string): TestIssuer {
  return agent.startsWith("agent://acme.") ? acme : globex;
}
