import { readFile } from "node:fs/promises";
import { beforeAll, expect, test } from "@jest/globals";
import { makeEd25519Key } from "../../deploy/keys/make.ts";
import { startRelay } from "../../deploy/local/relay.ts";
import { AdminClient } from "../support/admin.ts";
import { type AgentSocket, ed25519Key, type Frame, signed } from "../support/agent.ts";
import { registerWith, TestIssuer } from "../support/issuer.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** What the operator of two pods learns and does at their admin listeners over several partitions, and what the audit log has of it. */

const HOST = "relay.example";
const PARTITIONS = 4;
const relay = useRelay("alice", "bob", "carol");
const team = makeEd25519Key({ id: "team-1", agents: ["agent://team.*", "agent://captain"] });
const teamKey = ed25519Key("team-1", team.privateKey);
/** Of another key, in every partition. */
const crew = makeEd25519Key({ id: "crew-1", agents: ["agent://crew.*"] });
const crewKey = ed25519Key("crew-1", crew.privateKey);
const CREW = Array.from({ length: 12 }, (_, n) => `crew.a${n}`);
const acme = new TestIssuer("acme");
const admin = given(() => AdminClient.make(`${relay.keysFile}.admin`));
const other = given(() => AdminClient.make(`${relay.keysFile}.admin`, admin.key));
const auditOf = (n: number) => `${relay.keysFile}.audit-${n}`;
beforeAll(async () => {
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  const issuers = [acme.record(["agent://acme.*"])];
  await relay.writeKeys({ api_keys, signing_keys: [...signing_keys, team.record, crew.record], issuers });
});
const start = (n: number, settings: Record<string, string>) =>
  relay.startWsConnector({
    RELAY_PARTITIONS: String(PARTITIONS),
    RELAY_AUDIT_FILE: auditOf(n),
    RELAY_PUBLIC_HOSTS: HOST,
    ...settings,
  });
const first = given(() => start(1, admin.settings));
const second = given(() => start(2, other.settings));
const view = given(() => relay.view(PARTITIONS));

const linesIn = async (file: string): Promise<Frame[]> =>
  (await readFile(file, "utf8"))
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
/** Events of the operator, without their times. */
const acts = async (n: number) =>
  (await linesIn(auditOf(n)))
    .filter(({ event }) => event.startsWith("admin_"))
    .map(({ time: _, service: __, ...rest }) => rest);
async function untilAudited(n: number, act: object): Promise<void> {
  const has = async () => (await acts(n)).some((line) => JSON.stringify(line) === JSON.stringify(act));
  await until(JSON.stringify(act), has);
}
const ofTeam = (name: string, type: string, fields = {}) =>
  signed(teamKey, { type, from: `agent://${name}`, ...fields });
const servers = () => process.getActiveResourcesInfo().filter((name) => /^tcpserverwrap$/i.test(name)).length;

test("Without ADMIN_PORT a pod listens on one port alone, and with it on one more", async () => {
  const [before, environment] = [servers(), relay.environmentOf("ws-connector", { LOG_LEVEL: "silent" })];
  const pod = await startRelay({ environment, services: ["ws-connector"] });
  const without = servers() - before;
  await pod.stop();
  const spare = await AdminClient.make(`${relay.keysFile}.spare`);
  const withAdmin = await startRelay({
    environment: { ...environment, ...spare.settings },
    services: ["ws-connector"],
  });
  expect([without, servers() - before]).toEqual([1, 2]);
  await withAdmin.stop();
});

test("A pod does not start with an admin port and a key that is missing, short or for others to read", async () => {
  const settings = { ADMIN_PORT: String(admin.port + 1) };
  await expect(start(3, settings)).rejects.toThrow("ADMIN_PORT needs RELAY_ADMIN_KEY_FILE");
  const missing = { ...settings, RELAY_ADMIN_KEY_FILE: `${relay.keysFile}.none` };
  await expect(start(3, missing)).rejects.toThrow("RELAY_ADMIN_KEY_FILE cannot be read (ENOENT)");
  const short = await AdminClient.make(`${relay.keysFile}.short`, "too-short");
  await expect(start(3, short.settings)).rejects.toThrow(/RELAY_ADMIN_KEY_FILE must hold one line of at least 32/);
});

test("Who has no key, or another one, is told nothing, and stands in the audit log as a number", async () => {
  const own = await AdminClient.make(`${relay.keysFile}.own`);
  const pod = await start(3, own.settings);
  for (const authorization of ["", `Bearer ${"x".repeat(43)}`]) {
    for (const path of ["/admin/counts", "/admin/nothing"]) {
      const response = await fetch(`${own.url}${path}`, { headers: { authorization } });
      expect([response.status, response.headers.get("www-authenticate")]).toEqual([
        401,
        expect.stringMatching(/^Bearer /),
      ]);
    }
  }
  expect((await fetch(`${pod.url}/admin/counts`)).status).toBe(404);
  // A pod that stops writes what it has counted.
  await pod.stop();
  expect(await acts(3)).toEqual([{ event: "admin_refused", times: 4 }]);
});

test("Counts are those of the window, and of the pod that is asked", async () => {
  await relay.online(first, "alice");
  await relay.online(second, "bob");
  const unregistered = await relay.connect(second);
  const [one, two] = await Promise.all([admin.get("/admin/counts"), other.get("/admin/counts")]);
  const id = await view.windowId();
  for (const { status, body } of [one, two]) {
    expect(status).toBe(200);
    expect(body).toMatchObject({
      window: { id, since: expect.stringMatching(/Z$/) },
      agents: { online: 2, stale: 0, offline: 0 },
      unavailable_partitions: [],
    });
  }
  const pod = { id: expect.stringMatching(/^pod_/), registered_connections: 1, agents: 1, outbox_bytes: 0 };
  expect([one.body.pod, two.body.pod]).toEqual([
    { ...pod, connections: 1 },
    { ...pod, connections: 2 },
  ]);
  await untilAudited(1, { event: "admin_read", read: "counts" });
  await unregistered.close();
});

test("The agents of a key are those that its record lists, and those of its namespace, on whatever pod", async () => {
  const { key_id: aliceKey } = relay.envelope("alice", "agent.heartbeat");
  const ofAlice = await admin.get(`/admin/agents?key=${aliceKey}`);
  expect(ofAlice.body).toMatchObject({ kind: "key", id: aliceKey, total: 1, truncated: false, complete: true });
  expect(ofAlice.body.agents).toMatchObject([{ agent: "agent://alice", presence: "online", congested: false }]);
  const crew = [await relay.connect(first), await relay.connect(second)];
  for (const [n, socket] of crew.entries()) {
    expect(await socket.ask(ofTeam(`team.a${n}`, "agent.register"))).toMatchObject({ accepted: true });
  }
  await crew[0]?.close();
  await until("it is not online", async () => !(await view.isConnected("team.a0")));
  const { body } = await admin.get("/admin/agents?key=team-1");
  expect([body.kind, body.id, body.total, body.complete]).toEqual(["key", "team-1", 3, true]);
  expect(new Map(body.agents.map(({ agent, presence }: Frame) => [agent, presence]))).toEqual(
    new Map([
      ["agent://team.a0", "stale"],
      ["agent://team.a1", "online"],
      ["agent://captain", "not_seen"],
    ]),
  );
  expect(body.agents.at(-1)).toMatchObject({ agent: "agent://captain", last_seen: null, online_since: null });
  await untilAudited(1, { event: "admin_read", read: "agents", kind: "key", id: "team-1" });
});

test("Those of an issuer are those with its credentials", async () => {
  const agents = [await acme.agent("agent://acme.x"), await acme.agent("agent://acme.y")];
  for (const [n, agent] of agents.entries()) {
    const socket = await relay.connect(n === 0 ? first : second);
    expect(await socket.ask(registerWith(agent, HOST))).toMatchObject({ accepted: true });
  }
  const { body } = await other.get("/admin/agents?issuer=acme");
  expect(body).toMatchObject({ kind: "issuer", id: "acme", total: 2, truncated: false, complete: true });
  expect(body.agents.map(({ agent }: Frame) => agent).sort()).toEqual(["agent://acme.x", "agent://acme.y"]);
});

test("Counts and the agents of a key are those of all partitions, and an agent is disconnected alone, whichever it is in", async () => {
  const sockets = new Map<string, AgentSocket>();
  const { body: before } = await admin.get("/admin/counts");
  for (const [n, name] of CREW.entries()) {
    const socket = await relay.connect(n % 2 === 0 ? first : second);
    const register = signed(crewKey, { type: "agent.register", from: `agent://${name}` });
    expect(await socket.ask(register)).toMatchObject({ accepted: true });
    sockets.set(name, socket);
  }
  expect(new Set(CREW.map((name) => view.partition(name))).size).toBe(PARTITIONS);
  const { body } = await admin.get("/admin/counts");
  expect([body.agents.online - before.agents.online, body.pod.agents - before.pod.agents]).toEqual([12, 6]);
  const { body: listed } = await admin.get("/admin/agents?key=crew-1");
  expect([listed.total, listed.truncated, listed.complete]).toEqual([CREW.length, false, true]);
  expect(new Set(listed.agents.map(({ agent }: Frame) => agent))).toEqual(
    new Set(CREW.map((name) => `agent://${name}`)),
  );

  for (const [n, name] of CREW.entries()) {
    expect(await admin.disconnect(`agent://${name}`)).toMatchObject({ status: 200 });
    expect(await sockets.get(name)?.untilClosed()).toBe(1001);
    await until(`${name} is gone`, async () => !(await view.isConnected(name)));
    const open = CREW.filter((other) => sockets.get(other)?.closed === undefined);
    expect(open).toEqual(CREW.slice(n + 1));
  }
});

test("A key or issuer that is not in force is 404, and what was asked for is not written", async () => {
  for (const query of ["key=a-secret-by-mistake", "issuer=a-secret-by-mistake", "key=acme", "issuer=team-1"]) {
    const { status, body } = await admin.get(`/admin/agents?${query}`);
    expect([status, body.code]).toEqual([404, "not_in_force"]);
  }
  for (const query of ["", "key=team-1&issuer=acme", "api=x", "key=a%20b"]) {
    expect(await admin.get(`/admin/agents?${query}`)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  }
  await untilAudited(1, { event: "admin_read", read: "agents" });
  expect(await readFile(auditOf(1), "utf8")).not.toContain("a-secret-by-mistake");
});

test("An agent is disconnected from whatever pod has it, with those that share its connection and no others", async () => {
  const shared = await relay.online(second, "bob");
  expect(await shared.ask(relay.envelope("carol", "agent.register"))).toMatchObject({ accepted: true });
  const bystander = await relay.online(second, "alice");
  expect(await admin.disconnect("agent://bob")).toEqual({
    status: 200,
    body: { agent: "agent://bob", disconnected: true },
  });
  expect(await shared.untilClosed()).toBe(1001);
  expect(shared.notices("draining")).toMatchObject([{ reconnect_after_ms: expect.any(Number) }]);
  for (const name of ["bob", "carol"]) await until(`${name} is gone`, async () => !(await view.isConnected(name)));
  expect(await bystander.ask(relay.envelope("alice", "agent.heartbeat"))).toMatchObject({ accepted: true });
  await untilAudited(1, { event: "admin_disconnect", agent: "agent://bob", outcome: "disconnected" });
  expect(JSON.stringify(await acts(2))).not.toContain("admin_disconnect");
});

test("It is no ban: the agent is online again as soon as it comes back, and what it is sent arrives", async () => {
  const bob = await relay.online(second, "bob");
  const alice = await relay.online(first, "alice");
  const message = relay.envelope("alice", "message.send", { to: "agent://bob", payload: { message: "back?" } });
  expect(await alice.ask(message)).toMatchObject({ target_delivery: { status: "online" } });
  await bob.delivered(message.id);
});

test("What was promised to the agent before comes in before its connection is closed", async () => {
  const [alice, bob] = [await relay.online(first, "alice"), await relay.online(second, "bob")];
  const message = relay.envelope("alice", "message.send", { to: "agent://bob", payload: { message: "first" } });
  expect(await alice.ask(message)).toMatchObject({ target_delivery: { status: "online" } });
  await admin.disconnect("agent://bob");
  await bob.untilClosed();
  await bob.delivered(message.id);
});

test("An agent that no pod has is 404, and an act in the audit log all the same", async () => {
  expect(await admin.disconnect("agent://captain")).toMatchObject({ status: 404, body: { code: "not_connected" } });
  await untilAudited(1, { event: "admin_disconnect", agent: "agent://captain", outcome: "not_connected" });
});

test("The noisiest are keys by what they sent to the pod in its last minute or two, and by what was refused to them", async () => {
  const [alice, bob] = [await relay.online(first, "alice"), await relay.online(first, "bob")];
  const send = async (name: string, socket: AgentSocket, count: number, text: string) => {
    for (let n = 0; n < count; n += 1) {
      await socket.ask(relay.envelope(name, "message.send", { to: "agent://carol", payload: { message: text } }));
    }
  };
  await send("alice", alice, 30, "x");
  await send("bob", bob, 5, "x".repeat(15_000));
  const session_id = `ses_${"0".repeat(26)}`;
  await bob.ask(relay.envelope("bob", "session.approve", { to: "agent://alice", payload: { session_id } }));
  const { status, body } = await admin.get("/admin/noisiest?limit=2");
  const [aliceKey, bobKey] = ["alice", "bob"].map((name) => relay.envelope(name, "agent.heartbeat").key_id);
  expect([status, body.pod]).toEqual([200, expect.stringMatching(/^pod_/)]);
  expect(body.by_envelopes[0]).toMatchObject({ kind: "key", id: aliceKey });
  expect(body.by_bytes[0]).toMatchObject({ kind: "key", id: bobKey });
  expect([body.by_envelopes.length, body.by_bytes.length]).toEqual([2, 2]);
  expect(body.by_envelopes[0].envelopes).toBeGreaterThanOrEqual(30);
  expect(body.by_bytes[0].bytes).toBeGreaterThanOrEqual(5 * 15_000);
  expect(body.span_seconds).toBeLessThan(150);
  expect(body.refusals.by_sender).toContainEqual({ kind: "key", id: bobKey, times: 1 });
  expect(body.refusals.by_code).toContainEqual({ code: "unknown_session", times: 1 });
  expect(await admin.get("/admin/noisiest?limit=101")).toMatchObject({ status: 400 });
  await untilAudited(1, { event: "admin_read", read: "noisiest" });
});

test("The audit log has ids, and neither the key nor an address", async () => {
  for (const n of [1, 2]) {
    const text = await readFile(auditOf(n), "utf8");
    expect(text).not.toContain(admin.key);
    expect(text).not.toMatch(/127\.0\.0\.1|::1/);
  }
});
