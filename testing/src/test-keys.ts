import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { ANY_AGENT } from "relay-protocol/wire/credential.ts";
import { AGENT_ID_PATTERN } from "relay-protocol/wire/ids.ts";
import { type AgentKeyFile, issue, newAgentKeys } from "../../deploy/keys/issue.ts";
import { type IssuerFile, makeIssuerFile } from "../../deploy/keys/issuers.ts";
import { makeApiKey, okpKeyOf } from "../../deploy/keys/make.ts";
import { writePrivateFile } from "../../deploy/keys/store.ts";
import type { TestAgent } from "./contract.ts";

const CREDENTIAL_DAYS = 1;
const API_KEY_AGENTS = ["agent://alice", "agent://alice.*"];

/**
 * The keys of one relay, in a folder of their own. Its issuer vouches for whichever agent is asked for, so that the relay
 * has nothing to learn while it runs; the issuer's key never leaves this process.
 */
export class TestKeys {
  /** For RELAY_KEYS_FILE. */
  readonly file: string;
  /** Where the agents' key files are: `alice.json`. */
  readonly agentsFolder: string;
  readonly apiKey: string;
  readonly #folder: string;
  readonly #issuer: IssuerFile;
  readonly #known: KeysFile;
  readonly #agents = new Map<string, Promise<AgentKeyFile>>();

  static async make(): Promise<TestKeys> {
    const keys = new TestKeys(await mkdtemp(join(tmpdir(), "agent-relay-testing-")));
    await mkdir(keys.agentsFolder);
    await writePrivateFile(keys.file, keys.#known);
    return keys;
  }

  private constructor(folder: string) {
    this.#folder = folder;
    this.file = join(folder, "keys.json");
    this.agentsFolder = join(folder, "agents");
    const { record, apiKey } = makeApiKey({ id: "testing", agents: API_KEY_AGENTS });
    this.apiKey = apiKey;
    this.#issuer = makeIssuerFile("testing");
    const { issuer, public_key } = this.#issuer;
    this.#known = KeysFile.parse({
      api_keys: [record],
      issuers: [{ issuer, keys: [{ public_key }], agents: [ANY_AGENT] }],
    });
  }

  /** @throws {TypeError} when `name` is none of an agent. */
  async agent(name: string, url: string): Promise<TestAgent> {
    const agent = `agent://${name}`;
    if (!AGENT_ID_PATTERN.test(agent))
      throw new TypeError(`${agent} is not an agent id: agent() takes a name, as in agent("alice")`);
    const keyFile = join(this.agentsFolder, `${name}.json`);
    const made = this.#agents.get(name) ?? this.#make(agent, keyFile);
    this.#agents.set(name, made);
    return { url, ...optionsOf(await made), keyFile };
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #make(agent: string, file: string): Promise<AgentKeyFile> {
    const terms = { agent, days: CREDENTIAL_DAYS };
    const { keyFile } = issue(this.#issuer, this.#known, terms, newAgentKeys(), Date.now());
    await writePrivateFile(file, keyFile);
    return keyFile;
  }
}

/** A key file as the connector for TypeScript takes it. */
function optionsOf(file: AgentKeyFile): Omit<TestAgent, "url" | "keyFile"> {
  const sealing = okpKeyOf("X25519", file.sealing_key);
  return {
    agent: file.agent_id,
    key: { keyId: file.key_id, alg: file.alg, privateKey: file.private_key },
    credential: file.credential,
    sealingKeys: [{ publicKey: sealing.publicJwk.x, privateKey: sealing.privateKey }],
    trust: { issuers: file.trusted_issuers },
  };
}
