import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Connector } from "agent-relay-connector";
import { Connectors } from "relay-protocol/contract/packages.ts";
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from "testcontainers";
import { AgentRelayContainer, type StartedAgentRelayContainer } from "../../../testing/src/container.ts";
import { installedSample } from "../../examples/sample-project.ts";
import { Machine } from "../../packages/npm.ts";
import { until } from "../../support/until.ts";
import { use } from "../../support/use-relay.ts";

const IMAGE = "agent-relay-test/all";

describe("A container of a test's own", () => {
  let relay: StartedAgentRelayContainer;
  beforeAll(async () => {
    relay = await new AgentRelayContainer(IMAGE).start();
  });
  afterAll(async () => void (await relay.stop()));

  test("is named by the relay as others reach it", async () => {
    const { base_url, packages } = Connectors.parse(await (await fetch(`${relay.getUrl()}/connectors`)).json());
    expect(base_url).toBe(relay.getUrl());
    expect(packages.map(({ name }) => name)).toContain("agent-relay-testing");
  });

  test("has an API key for sends over HTTP", async () => {
    const answer = await fetch(`${relay.getUrl()}/v1/messages/send`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": relay.getApiKey() },
      body: JSON.stringify({ from: "agent://alice", to: "agent://bob", message: "hi" }),
    });
    expect(answer.status).toBe(202);
  });

  test("loses every connection with its pod, and the window stays", async () => {
    await using alice = new Connector(await relay.agent("alice"));
    await alice.start();
    const lost = new Promise((resolve) =>
      alice.on("state", ({ status }) => status === "reconnecting" && resolve(status)),
    );
    const window = await windowOf(relay);
    await relay.killPod();
    await lost;
    expect((await alice.send("agent://alice", { hello: "me" })).delivery.status).toBe("online");
    expect(await windowOf(relay)).toBe(window);
  });

  test("refuses while Redis is away, and has another window when it is back", async () => {
    await using alice = new Connector(await relay.agent("alice"));
    await alice.start();
    const window = await windowOf(relay);
    await relay.failRedis();
    await expect(alice.send("agent://alice", {}, { timeoutMs: 1000 })).rejects.toMatchObject({ retry: "later" });
    await relay.restoreRedis();
    await alice.send("agent://alice", {});
    expect(await windowOf(relay)).not.toBe(window);
  });
});

describe("A container on a Redis Cluster", () => {
  let relay: StartedAgentRelayContainer;
  beforeAll(async () => {
    relay = await new AgentRelayContainer(IMAGE).withCluster().start();
  }, 60_000);
  afterAll(async () => void (await relay.stop()));

  test("goes on when a primary has died, when it is back, and when the pods have died", async () => {
    await using alice = new Connector(await relay.agent("alice"));
    await using bob = new Connector(await relay.agent("bob"));
    bob.on("delivery", (delivery) => delivery.reply(delivery.payload));
    await Promise.all([alice.start(), bob.start()]);
    const asked = async (n: number) => (await alice.ask("agent://bob", { n }, { waitOnline: 30_000 })).payload;
    const faults = [
      () => relay.failRedis(),
      () => relay.restoreRedis(),
      () => relay.failRedis(),
      () => relay.killPod(),
    ];
    for (const [n, fault] of faults.entries()) {
      await fault();
      expect(await asked(n)).toEqual({ n });
    }
  }, 180_000);
});

test("The image alone refuses a RELAY_CLUSTER that says neither yes nor no", async () => {
  const { container } = await getContainerRuntimeClient();
  const created = await container.create({ Image: IMAGE, Env: ["RELAY_CLUSTER=maybe"] });
  await created.start();
  const { StatusCode } = await created.wait();
  await created.remove();
  expect(StatusCode).toBe(78);
});

/** Once the reports answer: each service finds Redis again by itself. */
async function windowOf(relay: StartedAgentRelayContainer): Promise<string> {
  let window: { window_id: string } | undefined;
  await until("the reports answer", async () => {
    const answer = await fetch(`${relay.getUrl()}/api/diagnostics`);
    ({ window } = (await answer.json()) as { window?: { window_id: string } });
    return window !== undefined;
  });
  return (window as unknown as { window_id: string }).window_id;
}

describe("The image alone", () => {
  let container: StartedTestContainer;
  beforeAll(async () => {
    container = await new GenericContainer(IMAGE)
      .withExposedPorts(8080)
      .withWaitStrategy(Wait.forHttp("/ready", 8080))
      .start();
  });
  afterAll(async () => void (await container.stop()));

  test("has keys of agent://alice and agent://bob in its folder", async () => {
    const { output } = await container.exec(["cat", ".local/alice.json"]);
    expect(JSON.parse(output)).toMatchObject({ agent_id: "agent://alice", alg: "ed25519" });
  });
});

describe("A project that has the package", () => {
  const machine = use(new Machine());

  test("passes its test on a container", async () => {
    const project = await installedSample(machine);
    const settings = `AGENT_RELAY_IMAGE=${IMAGE} TESTCONTAINERS_RYUK_DISABLED=true`;
    const { code, stdout } = await machine.shell(`${settings} npm run test:container`, project);
    expect([code, /^(?:#|ℹ) pass 1$/m.test(stdout)]).toEqual([0, true]);
  }, 240_000);
});
