import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type * as support from "../../support/relay.ts";
import type { Pod } from "../../support/relay.ts";
import { previousTree } from "./previous-tree.ts";

/**
 * What the conformance suite of the version before has for a relay, but for the services that `RELAY_CURRENT_SERVICES` names, with
 * commas: these are processes of this tree.
 */

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));
const CURRENT = new Set(process.env.RELAY_CURRENT_SERVICES?.split(","));

// Of the tree that the suite is of: what it uses of its relay is there.
const previous: typeof support = await import(join(previousTree(), "test/support/relay.ts"));
export const { use } = await import(join(previousTree(), "test/support/use.ts"));

export class TestRelay extends previous.TestRelay {
  override async startWsConnector(overrides: Record<string, string> = {}): Promise<Pod> {
    return CURRENT.has("ws-connector")
      ? await this.#start("ws-connector", overrides)
      : await super.startWsConnector(overrides);
  }

  override async startGateway(overrides: Record<string, string> = {}): Promise<Pod> {
    return CURRENT.has("gateway") ? await this.#start("gateway", overrides) : await super.startGateway(overrides);
  }

  override async startOpsReporting(overrides: Record<string, string> = {}): Promise<Pod> {
    return CURRENT.has("ops-reporting")
      ? await this.#start("ops-reporting", overrides)
      : await super.startOpsReporting(overrides);
  }

  protected override programOf(service: ServiceName): string {
    const program = super.programOf(service);
    return CURRENT.has(service) ? join(REPOSITORY, program) : program;
  }

  /** As if it were no process: it ends as it does when it is asked to, and what it logs stands in the log of the relay. */
  async #start(service: ServiceName, overrides: Record<string, string>): Promise<Pod> {
    const pod = await this.startProcess(service, overrides);
    this.log.push(...pod.log.splice(0));
    pod.log.push = (...lines) => this.log.push(...lines);
    return { port: pod.port, url: pod.url, stop: async () => void (await pod.end("SIGTERM")) };
  }
}
