import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  type ContainerRuntimeClient,
  DockerComposeEnvironment,
  getContainerRuntimeClient,
  type StartedDockerComposeEnvironment,
} from "testcontainers";
import { freePort } from "../../support/free-port.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
/** The image of each service that is built. */
const IMAGES = {
  gateway: "gateway",
  "window-reset": "gateway",
  keys: "setup",
  "redis-passwords": "setup",
  "ws-connector": "ws-connector",
  "ops-reporting": "ops-reporting",
} as const;
/** Of the Redis Cluster, beside the one Redis of docker-compose.yml. */
const CLUSTER_IMAGES = { ...IMAGES, "redis-cluster": "gateway" } as const;
const PROJECT_LABEL = "com.docker.compose.project";
const SERVICE_LABEL = "com.docker.compose.service";

/** Services that run until they are stopped. */
export const LASTING = ["redis", "gateway", "ws-connector", "ops-reporting", "edge"] as const;
export type ComposeService = (typeof LASTING)[number] | keyof typeof CLUSTER_IMAGES;

type Docker = ContainerRuntimeClient["container"]["dockerode"];
export type StackContainer = ReturnType<Docker["getContainer"]>;

/**
 * The stack of docker-compose.yml, as a clean clone of the repository brings it up. Project, ports and images are its
 * own, so that a developer's stack beside it is left alone. Everything ends with `stop`.
 */
export class ComposeStack {
  readonly project = `relay-test-${randomBytes(4).toString("hex")}`;
  readonly #environment: Record<string, string>;
  readonly #isCluster: boolean;
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;
  #started: StartedDockerComposeEnvironment | undefined;

  /** @param environment what a developer would have set. @param options.cluster with docker-compose.cluster.yml on top. */
  constructor(environment: Record<string, string> = {}, { cluster = false }: { readonly cluster?: boolean } = {}) {
    this.#environment = { ...environment };
    this.#isCluster = cluster;
  }

  /** The clone. */
  get folder(): string {
    return (this.#folder as { path: string }).path;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#environment.RELAY_PORT}`;
  }

  get websocketUrl(): string {
    return `${this.url.replace("http", "ws")}/ws`;
  }

  /** Makes the clone: what is in git or could be added to it. */
  async clone(): Promise<void> {
    this.#folder = await temporaryFolder();
    const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
    const { stdout } = await promisify(execFile)("git", list, { cwd: REPOSITORY, maxBuffer: 2 ** 24 });
    for (const file of stdout.split("\0").filter(Boolean)) await copy(file, this.folder);
    await writeFile(join(this.folder, "images.json"), JSON.stringify({ services: this.#ownImages() }));

    this.#environment.RELAY_PORT = String(await freePort());
    this.#environment.RELAY_BASE_URL = this.url;
    this.#environment.RELAY_WS_URL = this.url.replace("http", "ws");
  }

  /** `docker compose up --build -d`; resolves when every service is healthy. */
  async deploy(): Promise<void> {
    await this.#up(["--build"]);
  }

  /** `docker compose up -d --scale <service>=<n>`; resolves when every service is healthy. */
  async scale(service: ComposeService, n: number): Promise<void> {
    await this.#up(["--scale", `${service}=${n}`]);
  }

  /** `docker compose down`; the volume stays. */
  async down(): Promise<void> {
    const started = this.#started;
    this.#started = undefined;
    await started?.down({ removeVolumes: false });
  }

  async stop(): Promise<void> {
    await this.down();
    await this.#removeVolumes();
    const docker = await dockerEngine();
    const images = await docker.listImages({ filters: { label: [`${PROJECT_LABEL}=${this.project}`] } });
    for (const { Id } of images) await docker.getImage(Id).remove({ force: true });
    await this.#folder?.[Symbol.asyncDispose]();
  }

  /** Containers of a service, or of all; of those that have ended too. */
  async containers(service?: ComposeService): Promise<StackContainer[]> {
    const docker = await dockerEngine();
    const label = [`${PROJECT_LABEL}=${this.project}`];
    if (service !== undefined) label.push(`${SERVICE_LABEL}=${service}`);
    const found = await docker.listContainers({ all: true, filters: { label } });
    return found.map(({ Id }) => docker.getContainer(Id));
  }

  /** The only container of a service. */
  async container(service: ComposeService): Promise<StackContainer> {
    const [container, ...others] = await this.containers(service);
    if (container === undefined || others.length > 0) throw new Error(`There is not one ${service}.`);
    return container;
  }

  /** What is left of the project, by kind. */
  async remains(): Promise<{ containers: number; networks: number; volumes: number }> {
    const docker = await dockerEngine();
    const filters = { label: [`${PROJECT_LABEL}=${this.project}`] };
    const { Volumes } = await docker.listVolumes({ filters });
    const networks = await docker.listNetworks({ filters });
    return {
      containers: (await this.containers()).length,
      networks: networks.length,
      volumes: Volumes.length,
    };
  }

  async #removeVolumes(): Promise<void> {
    const docker = await dockerEngine();
    const { Volumes } = await docker.listVolumes({ filters: { label: [`${PROJECT_LABEL}=${this.project}`] } });
    for (const { Name } of Volumes) await docker.getVolume(Name).remove();
  }

  /** Exit codes of the containers that have ended since a time, by service. @param since Unix ms. */
  async exitCodes(since: number): Promise<Record<string, number[]>> {
    const docker = await dockerEngine();
    const filters = { event: ["die"], label: [`${PROJECT_LABEL}=${this.project}`] };
    const events = await docker.getEvents({ since: since / 1000, until: Date.now() / 1000, filters });
    const lines = (await text(events)).split("\n").filter(Boolean);
    const codes: Record<string, number[]> = {};
    for (const line of lines) {
      const { [SERVICE_LABEL]: service, exitCode } = JSON.parse(line).Actor.Attributes;
      codes[service] = [...(codes[service] ?? []), Number(exitCode)];
    }
    return codes;
  }

  /** The secrets of the development keys. */
  async developmentAgents() {
    return JSON.parse(await readFile(join(this.folder, ".local/dev-agents.json"), "utf8"));
  }

  /** What every service's image is called here. The label makes it differ from the image that anybody else has built. */
  #ownImages(): object {
    const build = { labels: { [PROJECT_LABEL]: this.project } };
    const images = this.#isCluster ? CLUSTER_IMAGES : IMAGES;
    const own = Object.entries(images).map(([service, name]) => [service, { image: `${this.project}/${name}`, build }]);
    return Object.fromEntries(own);
  }

  async #up(options: string[]): Promise<void> {
    const cluster = this.#isCluster ? ["docker-compose.cluster.yml"] : [];
    this.#started = await new DockerComposeEnvironment(this.folder, ["docker-compose.yml", ...cluster, "images.json"])
      .withProjectName(this.project)
      .withEnvironment(this.#environment)
      .withClientOptions({ commandOptions: options })
      .up();
  }
}

export async function dockerEngine(): Promise<Docker> {
  return (await getContainerRuntimeClient()).container.dockerode;
}

/** All that a container wrote, on both streams. */
export async function logOf(container: StackContainer): Promise<string> {
  const log = await container.logs({ stdout: true, stderr: true });
  return log.toString("latin1");
}

/** What a shell command prints inside a container. */
export async function inside(container: StackContainer, command: string): Promise<string> {
  const client = await getContainerRuntimeClient();
  const { stdout } = await client.container.exec(container, ["sh", "-c", command]);
  return stdout;
}

/** The body that a service answers inside its container, at a port of its own. */
export async function readInside(container: StackContainer, path: string): Promise<string> {
  const program = `process.stdout.write(await (await fetch("http://127.0.0.1:${path}")).text())`;
  const client = await getContainerRuntimeClient();
  const command = ["node", "--input-type=module", "-e", program];
  const { exitCode, output } = await client.container.exec(container, command);
  if (exitCode !== 0) throw new Error(`Nothing answers at ${path}: ${output}`);
  return output;
}

/** A file that another process has taken away meanwhile is in no clone either. */
async function copy(file: string, to: string): Promise<void> {
  await cp(join(REPOSITORY, file), join(to, file)).catch((error) => {
    if (error.code !== "ENOENT") throw error;
  });
}
