import { ANY_AGENT } from "../contract/credential.ts";
import type { IssuerRecord } from "../contract/keys-file.ts";

/** Of the agents of listed signing keys. No issuer has this name: it holds a space. */
const LISTED = "listed keys";

/**
 * Whose an agent is: of all patterns of listed signing keys and of issuers, the most specific that matches its id says who
 * may speak for it. Source: docs/protocol.md#credentials.
 */
export class AgentHolders {
  readonly #holders = new Map<string, string>();
  /** What makes the keys file invalid: patterns of an issuer that another holder has. Positions, never values. */
  readonly problems: readonly string[];

  constructor(listed: readonly { readonly agents: readonly string[] }[], issuers: readonly IssuerRecord[]) {
    for (const pattern of listed.flatMap(({ agents }) => agents)) this.#holders.set(pattern, LISTED);
    this.problems = issuers.flatMap(({ issuer, agents }, index) =>
      agents.flatMap((pattern, place) =>
        this.#claim(pattern, issuer) ? [] : [`issuers.${index}.agents.${place}: is another holder's as well`],
      ),
    );
  }

  isOfListedKeys(agent: string): boolean {
    return this.#holderOf(agent) === LISTED;
  }

  isOfIssuer(agent: string, issuer: string): boolean {
    return this.#holderOf(agent) === issuer;
  }

  #claim(pattern: string, issuer: string): boolean {
    const holder = this.#holders.get(pattern) ?? issuer;
    this.#holders.set(pattern, holder);
    return holder === issuer;
  }

  #holderOf(agent: string): string | undefined {
    let holder = this.#holders.get(agent);
    for (let dot = agent.lastIndexOf("."); holder === undefined && dot > 0; dot = agent.lastIndexOf(".", dot - 1)) {
      holder = this.#holders.get(`${agent.slice(0, dot)}.*`);
    }
    return holder ?? this.#holders.get(ANY_AGENT);
  }
}
