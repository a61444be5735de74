import { execFile } from "node:child_process";
import { chown, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { AgentSocket, ed25519Key, signed } from "../../support/agent.ts";
import { codeBlock } from "../../support/documents.ts";
import { HttpClient } from "../../support/http.ts";
import { until } from "../../support/until.ts";
import { ComposeStack, dockerEngine, inside, LASTING } from "./stack.ts";

const NOBODY = 65_534;
/** One message more to deliver, a page to answer: far less than the 30 s after which a service would be killed. */
const STOPS_WITHIN_MS = 6000;
const stack = new ComposeStack();
const http = new HttpClient();

beforeAll(async () => {
  await stack.clone();
  // So that root's own files are told from those that it made for somebody.
  if (process.getuid?.() === 0) await chown(join(stack.folder, ".local"), NOBODY, NOBODY);
  await stack.deploy();
}, 300_000);
afterAll(() => stack.stop(), 60_000);

test("the first message of the README reaches an agent that connected through the edge, and is counted", async () => {
  const { bob } = await stack.developmentAgents();
  const socket = await AgentSocket.open(stack.websocketUrl);
  const register = signed(ed25519Key(bob.key_id, bob.private_key), { type: "agent.register", from: bob.agent_id });
  expect(await socket.ask(register)).toMatchObject({ frame: "ack" });

  const readme = await readFile(join(stack.folder, "README.md"), "utf8");
  const command = codeBlock(readme, "sh first-message").replaceAll("http://127.0.0.1:8080", stack.url);
  const { stdout } = await promisify(execFile)("sh", ["-c", command], { cwd: stack.folder });
  const answer = JSON.parse(stdout);
  expect(answer).toMatchObject({ accepted: true, target_delivery: { can_deliver_realtime: true } });
  const { envelope } = await socket.delivered(answer.envelope_id);
  expect(envelope).toMatchObject({ from: "agent://alice", payload: { message: "Hello, Bob." } });
  await socket.close();

  await until("the message is counted", async () => {
    const { body } = await http.get(`${stack.url}/api/ops/traffic-daily`);
    return body.totals.published_envelopes === 1 && body.totals.simple_send_accepted === 1;
  });
});

test("each service can read its own Redis password, and no other's", async () => {
  for (const service of ["gateway", "ws-connector", "ops-reporting"] as const) {
    const readable = await inside(await stack.container(service), "cat /run/redis-users/* 2>/dev/null || true");
    expect(readable).toMatch(new RegExp(`^REDIS_URL=redis://${service}:[0-9a-f]{64}@redis:6379\\n$`));
  }
});

test("the keys in .local belong to whoever owns the folder, and to nobody else", async () => {
  const local = join(stack.folder, ".local");
  const { uid } = await stat(local);
  const files = ["dev-agents.json", "keys.json", "compose", "compose/keys.json"];
  const owners = await Promise.all(files.map(async (file) => (await stat(join(local, file))).uid));
  expect(owners).toEqual(files.map(() => uid));
  const modes = await Promise.all(files.map(async (file) => (await stat(join(local, file))).mode & 0o077));
  expect(modes).toEqual([0, 0, 0o055, 0o040]);
});

test.each(LASTING)("%s runs without root, rights or a file to write", async (service) => {
  const { Config, HostConfig } = await (await stack.container(service)).inspect();
  expect(Config.User).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  expect(HostConfig).toMatchObject({
    ReadonlyRootfs: true,
    Privileged: false,
    CapDrop: ["ALL"],
    CapAdd: null,
    SecurityOpt: ["no-new-privileges:true"],
  });
});

test.each(LASTING)("%s is bounded in memory, cores and processes", async (service) => {
  const { HostConfig } = await (await stack.container(service)).inspect();
  const { Memory, CpuQuota, PidsLimit } = HostConfig;
  expect([Memory, CpuQuota, PidsLimit].map((limit) => (limit ?? 0) > 0)).toEqual([true, true, true]);
});

test("nothing but the edge can be reached from the host, and only from its loopback", async () => {
  const published = await Promise.all(
    LASTING.map(async (service) => {
      const { HostConfig } = await (await stack.container(service)).inspect();
      const bindings = Object.values(HostConfig.PortBindings ?? {}) as { HostIp: string }[][];
      return [service, bindings.flat().map(({ HostIp }) => HostIp)];
    }),
  );
  expect(Object.fromEntries(published.filter(([, addresses]) => addresses?.length !== 0))).toEqual({
    edge: ["127.0.0.1"],
  });
});

test("images name the version that they are of", async () => {
  const { version } = JSON.parse(await readFile(join(stack.folder, "package.json"), "utf8"));
  const docker = await dockerEngine();
  for (const service of ["gateway", "ws-connector", "ops-reporting"]) {
    const { Config } = await docker.getImage(`${stack.project}/${service}`).inspect();
    expect(Config.Labels["org.opencontainers.image.version"]).toBe(version);
  }
});

test("each service ends with code 0, soon, with clients connected", async () => {
  const clients = await Promise.all(Array.from({ length: 20 }, () => AgentSocket.open(stack.websocketUrl)));
  for (const service of [...LASTING].reverse()) {
    const container = await stack.container(service);
    const startedAt = performance.now();
    await container.stop();
    expect({ service, took: performance.now() - startedAt < STOPS_WITHIN_MS }).toEqual({ service, took: true });
    expect({ service, code: (await container.inspect()).State.ExitCode }).toEqual({ service, code: 0 });
  }
  await Promise.all(clients.map((client) => client.untilClosed()));
}, 60_000);

test("`docker compose down` leaves nothing of the project but its Redis passwords, with which it comes up again", async () => {
  expect(await stack.remains()).toMatchObject({ networks: 2 });
  await stack.down();
  expect(await stack.remains()).toEqual({ containers: 0, networks: 0, volumes: 1 });
  await stack.deploy();
  expect((await http.get(`${stack.url}/ready`)).status).toBe(200);
}, 120_000);
