import { chmod } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import {
  getContainerRuntimeClient,
  Network,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from "testcontainers";
import { freePort } from "../../support/free-port.ts";
import { type MortalPod, type Pod, TestRelay } from "../../support/relay.ts";
import { DeployedContainer } from "./deployed-container.ts";
import { asEdge, EDGE_IMAGE } from "./edge.ts";
import { RedisContainer } from "./redis-container.ts";

const KEYS_FOLDER = "/run/agent-relay";
const PORT = 8080;
/** docker-compose.yml gives a service as long to end by itself. */
const STOP_WITHIN_MS = 30_000;

type Environment = Record<string, string>;

/**
 * A relay whose pods are containers of the built images, on a network of their own, each with its Redis user: all that
 * the tests of conformance and of connectors use of a `TestRelay`.
 */
export class ContainerRelay extends TestRelay {
  override readonly redis = new RedisContainer();
  readonly #containers: Promise<StartedTestContainer>[] = [];
  #network: StartedNetwork | undefined;

  override async start(): Promise<this> {
    this.#network = await new Network().start();
    this.redis.join(this.#network);
    await super.start();
    await chmod(dirname(this.keysFile), 0o755);
    return this;
  }

  override async stop(): Promise<void> {
    const started = await Promise.allSettled(this.#containers);
    await Promise.all(started.map((pod) => pod.status === "fulfilled" && pod.value.stop()));
    await super.stop();
    await this.#network?.stop();
  }

  override get environment(): Environment {
    return { REDIS_URL: this.redis.url, RELAY_KEYS_FILE: `${KEYS_FOLDER}/keys.json`, LOG_LEVEL: "debug" };
  }

  /** The services of the containers are other users than that of the tests. */
  protected override get keysFileMode(): number {
    return 0o644;
  }

  override async startMortalWsConnector(overrides: Environment = {}): Promise<MortalPod> {
    // Under a name of its own: who is sent here alone, and nobody through the edge, loses a connection with it.
    return await this.startService("ws-connector", overrides, "mortal-ws-connector");
  }

  override async startWsConnectors(overrides: Environment = {}): Promise<Pod> {
    return inTurn(await Promise.all([this.startWsConnector(overrides), this.startWsConnector(overrides)]));
  }

  /** The three services behind the edge, two connectors among them. */
  override async startWhole(overrides: Environment = {}): Promise<Pod> {
    const port = await freePort();
    const settings = {
      RELAY_BASE_URL: `http://127.0.0.1:${port}`,
      RELAY_WS_URL: `ws://127.0.0.1:${port}`,
      RELAY_TRUSTED_PROXY_HOPS: "1",
      ...overrides,
    };
    await Promise.all([
      this.startGateway(settings),
      this.startWsConnectors(settings),
      this.startOpsReporting(settings),
    ]);
    return await this.#startEdge(port);
  }

  /** The edge of docker-compose.yml. @param port a free one, since the services must know their address before. */
  async #startEdge(port: number): Promise<Pod> {
    const edge = asEdge(this.#container(EDGE_IMAGE, "edge"))
      .withExposedPorts({ container: PORT, host: port })
      .withWaitStrategy(Wait.forHttp("/ready", PORT, { abortOnContainerExit: true }));
    return await this.#start(edge);
  }

  /** @param name of the container on the network. */
  override async startService(
    service: ServiceName,
    overrides: Environment = {},
    name: string = service,
  ): Promise<MortalPod> {
    const container = this.#container(`agent-relay-test/${service}`, name)
      .withEnvironment(this.environmentOf(service, overrides))
      .withBindMounts([{ source: dirname(this.keysFile), target: KEYS_FOLDER, mode: "ro" }])
      .withExposedPorts(PORT)
      .withLogConsumer((output) => createInterface(output).on("line", (line) => this.log.push(line)))
      .withWaitStrategy(Wait.forHttp("/ready", PORT, { abortOnContainerExit: true }));
    return await this.#start(container);
  }

  #container(image: string, name: string): DeployedContainer {
    return new DeployedContainer(image, this.#network as StartedNetwork, name);
  }

  async #start(container: DeployedContainer): Promise<MortalPod> {
    const starting = container.start();
    this.#containers.push(starting);
    const started = await starting;
    const port = started.getMappedPort(PORT);
    const stop = async () => void (await started.stop({ timeout: STOP_WITHIN_MS }));
    // testcontainers has no method for it.
    const end = async (signal: "SIGKILL") => {
      const { container } = await getContainerRuntimeClient();
      await container.getById(started.getId()).kill({ signal });
    };
    return { port, url: `http://127.0.0.1:${port}`, end, stop };
  }
}

/** Several pods as one: each look at the address is the next pod's turn. */
function inTurn(pods: readonly Pod[]): Pod {
  let turns = 0;
  const next = () => pods[turns++ % pods.length] as Pod;
  return {
    get port() {
      return next().port;
    },
    get url() {
      return next().url;
    },
    stop: async () => void (await Promise.all(pods.map((pod) => pod.stop()))),
  };
}
