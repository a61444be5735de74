import { GenericContainer, type StartedNetwork } from "testcontainers";

/**
 * A container as docker-compose.yml starts it: without a file to write or a right to use, and on one network alone, under
 * a name that others may share. (`withNetworkAliases` would put it on the engine's default network, too.)
 */
export class DeployedContainer extends GenericContainer {
  readonly #alias: string;

  constructor(image: string, network: StartedNetwork, alias: string) {
    super(image);
    this.#alias = alias;
    this.withNetwork(network).withDroppedCapabilities("ALL").withSecurityOpt("no-new-privileges:true");
    this.hostConfig.ReadonlyRootfs = true;
  }

  protected override async beforeContainerCreated(): Promise<void> {
    const network = this.networkMode as string;
    this.createOpts.NetworkingConfig = { EndpointsConfig: { [network]: { Aliases: [this.#alias] } } };
  }
}
