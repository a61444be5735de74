import { ANY_AGENT } from "./contract.ts";
import type { IssuerRecord } from "./issuer-record.ts";

/** Whose an agent is: of all patterns of the issuers, the most specific that matches its id says which issuer has it. */
export class AgentHolders {
  /** Issuer by pattern. */
  readonly #holders = new Map<string, string>();
  /** False when one pattern stands under two issuers. */
  readonly isUnambiguous: boolean;

  constructor(records: readonly IssuerRecord[]) {
    const claims = records.flatMap(({ issuer, agents }) => agents.map((pattern) => ({ issuer, pattern })));
    for (const { issuer, pattern } of claims) this.#holders.set(pattern, issuer);
    this.isUnambiguous = claims.every(({ issuer, pattern }) => this.#holders.get(pattern) === issuer);
  }

  holderOf(agent: string): string | undefined {
    return this.namedHolderOf(agent) ?? this.#holders.get(ANY_AGENT);
  }

  /** The issuer that has the agent by its id or its name space. */
  namedHolderOf(agent: string): string | undefined {
    let holder = this.#holders.get(agent);
    for (let dot = agent.lastIndexOf("."); holder === undefined && dot > 0; dot = agent.lastIndexOf(".", dot - 1)) {
      holder = this.#holders.get(`${agent.slice(0, dot)}.*`);
    }
    return holder;
  }
}
