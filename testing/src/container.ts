import { GenericContainer, getContainerRuntimeClient, type InspectResult, Wait } from "testcontainers";
import { StartedAgentRelayContainer } from "./started-container.ts";
import { TestKeys } from "./test-keys.ts";

/** For testcontainers: a relay in a container of the image `all`, as deploy/docker/Dockerfile makes it. */

export type { TestAgent, TestIssuer } from "./contract.ts";
export { StartedAgentRelayContainer };

const PORT = 8080;
const KEYS_FILE = "/run/agent-relay/keys.json";
const BASE_URL_FILE = "/tmp/relay-base-url";
/** The services are another user than root, who gets what is copied. */
const READABLE = 0o444;

export class AgentRelayContainer extends GenericContainer {
  #isCluster = false;

  constructor(image: string) {
    super(image);
    this.withExposedPorts(PORT)
      .withEnvironment({ RELAY_KEYS_FILE: KEYS_FILE, RELAY_BASE_URL_FILE: BASE_URL_FILE })
      .withWaitStrategy(Wait.forHttp("/ready", PORT));
  }

  /** On a Redis Cluster of three primaries and three replicas in the container, with two pods. */
  withCluster(): this {
    this.#isCluster = true;
    return this.withEnvironment({ RELAY_CLUSTER: "true" });
  }

  override async start(): Promise<StartedAgentRelayContainer> {
    const keys = await TestKeys.make();
    this.withCopyFilesToContainer([{ source: keys.file, target: KEYS_FILE, mode: READABLE }]);
    try {
      const options = { port: PORT, keys, isCluster: this.#isCluster };
      return new StartedAgentRelayContainer(await super.start(), options);
    } catch (error) {
      await keys.remove();
      throw error;
    }
  }

  /** Only now is the port known under which the relay is reached, which its documents and answers name. */
  protected override async containerStarting({ name, ports }: InspectResult): Promise<void> {
    const { container, info } = await getContainerRuntimeClient();
    const port = ports[`${PORT}/tcp`]?.[0]?.hostPort;
    const url = `http://${info.containerRuntime.host}:${port}`;
    await container.exec(container.getById(name.replace(/^\//, "")), ["sh", "-c", `echo ${url} > ${BASE_URL_FILE}`]);
  }
}
