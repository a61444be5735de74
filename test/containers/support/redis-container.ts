import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { getContainerRuntimeClient, type StartedNetwork, type StartedTestContainer, Wait } from "testcontainers";
import { passwordVariable, REDIS_USERS } from "../../support/deployed-users.ts";
import { type RedisUser, TestRedis } from "../../support/test-redis.ts";
import { DeployedContainer } from "./deployed-container.ts";

const DEPLOYED = fileURLToPath(new URL("../../../deploy/redis", import.meta.url));

/** Redis as it is deployed, in a container that only those of its network reach. */
export class RedisContainer extends TestRedis {
  readonly #passwords = new Map(REDIS_USERS.map((user) => [user, randomBytes(12).toString("hex")]));
  #network: StartedNetwork | undefined;
  #container: StartedTestContainer | undefined;
  #state: "runs" | "hangs" | "dead" = "dead";

  /** Where `start` puts it. */
  join(network: StartedNetwork): void {
    this.#network = network;
  }

  override get url(): string {
    return "redis://redis:6379";
  }

  override urlFor(user: RedisUser): string {
    return this.url.replace("://", `://${user}:${this.#passwords.get(user)}@`);
  }

  override async start(): Promise<void> {
    if (this.#state !== "dead") return;
    if (this.#container === undefined) this.#container = await this.#create();
    else await this.#container.restart();
    this.#state = "runs";
  }

  override async stop(): Promise<void> {
    if (this.#state === "hangs") await this.resume();
    await this.#container?.stop();
  }

  override async pause(): Promise<void> {
    await (await this.#handle()).pause();
    this.#state = "hangs";
  }

  override async resume(): Promise<void> {
    if (this.#state !== "hangs") return;
    await (await this.#handle()).unpause();
    this.#state = "runs";
  }

  override async kill(): Promise<void> {
    await (await this.#handle()).kill();
    this.#state = "dead";
  }

  async #create(): Promise<StartedTestContainer> {
    const passwords = [...this.#passwords].map(([user, password]) => [passwordVariable(user), password]);
    return await new DeployedContainer("redis:8-alpine", this.#network as StartedNetwork, "redis")
      .withCommand(["sh", "/etc/agent-relay/start.sh"])
      .withUser("999:999")
      .withTmpFs({ "/tmp": "" })
      .withBindMounts([{ source: DEPLOYED, target: "/etc/agent-relay", mode: "ro" }])
      .withEnvironment(Object.fromEntries(passwords))
      .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/))
      .start();
  }

  /** What testcontainers has no method for. */
  async #handle() {
    const { container } = await getContainerRuntimeClient();
    return container.getById((this.#container as StartedTestContainer).getId());
  }
}
