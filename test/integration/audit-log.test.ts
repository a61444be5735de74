import { readFile, utimes } from "node:fs/promises";
import { beforeAll, expect, test } from "@jest/globals";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { resetWindow } from "relay-window/window/reset.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** What an operator finds in the audit log of what happened, line by line. */

const relay = useRelay("alice", "bob-hmac");
const http = new HttpClient();
let file: string;
beforeAll(() => {
  file = `${relay.keysFile}.audit`;
});
beforeAll(() => relay.startGateway({ RELAY_AUDIT_FILE: `${file}-gateway` }));
const pod = given(() => relay.startWsConnector({ RELAY_AUDIT_FILE: file }));
let alice: AgentSocket;

async function linesIn(path: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(path, "utf8");
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}
const fileLines = new Map<string, number>();
/** Those since the last look, without their times and services. */
async function newLines(path = file): Promise<Frame[]> {
  const lines = await linesIn(path);
  const seen = fileLines.get(path) ?? 0;
  fileLines.set(path, lines.length);
  return lines.slice(seen).map(({ time: _, service: __, ...rest }) => rest);
}
/** As `newLines`, once there are so many. */
async function nextLines(count: number, path = file): Promise<Frame[]> {
  const seen = fileLines.get(path) ?? 0;
  await until(`${count} lines`, async () => (await linesIn(path)).length >= seen + count);
  return await newLines(path);
}

test("names the window that each service enters", async () => {
  const id = await relay.view().windowId();
  const entered = { event: "window_entered", window: id, deploy: "local" };
  expect(await nextLines(1)).toEqual([entered]);
  expect(await nextLines(1, `${file}-gateway`)).toEqual([entered]);
});

test("has each register, with who brings the agent, and each takeover; heartbeats, messages and repeats are none", async () => {
  alice = await relay.connect(pod);
  const register = relay.envelope("alice", "agent.register");
  await alice.ask(register);
  await alice.ask(register);
  await alice.ask(relay.envelope("alice", "agent.heartbeat"));
  await alice.ask(relay.envelope("alice", "message.send", { to: "agent://bob-hmac", payload: { secret: "text" } }));
  const other = await relay.connect(pod);
  await other.ask(relay.envelope("alice", "agent.register"));
  await alice.untilClosed();
  const [{ epoch }] = alice.notices("superseded") as [{ epoch: number }];
  alice = other;
  const key_id = register.key_id;
  const registered = { event: "registered", agent: "agent://alice", kind: "key", id: key_id, key_id };
  const lines = await nextLines(3);
  expect(lines[0]).toEqual({ ...registered, epoch: expect.any(Number) });
  expect(lines.slice(1)).toEqual(
    expect.arrayContaining([
      { ...registered, epoch },
      { event: "taken_over", agent: "agent://alice", epoch },
    ]),
  );
  expect(await newLines()).toEqual([]);
});

test("counts refusals by who was refused, and by code, and those that nobody is proven to be refused by for none", async () => {
  // A service that stops writes what it has counted.
  const refused = async (service: ServiceName, refuse: (pod: Pod) => Promise<void>) => {
    const path = `${file}-refused-by-${service}`;
    const pod = await relay.startService(service, { RELAY_AUDIT_FILE: path });
    await refuse(pod);
    await pod.stop();
    return (await newLines(path)).filter(({ event }) => event === "refused");
  };
  const { key_id } = relay.envelope("bob-hmac", "agent.heartbeat");
  const ofPod = await refused("ws-connector", async (pod) => {
    const bob = await relay.online(pod, "bob-hmac");
    for (let n = 0; n < 3; n += 1) await bob.ask(relay.envelope("alice", "message.send", { to: "agent://bob-hmac" }));
    for (let n = 0; n < 3; n += 1) {
      const foreign = relay.envelope("bob-hmac", "message.send", { to: "agent://alice", sig: "A".repeat(43) });
      await bob.ask(foreign);
    }
    const decision = { to: "agent://alice", payload: { session_id: `ses_${"0".repeat(26)}` } };
    await bob.ask(relay.envelope("bob-hmac", "session.approve", decision));
  });
  expect(ofPod).toEqual([{ event: "refused", kind: "key", id: key_id, code: "unknown_session", times: 1 }]);
  const ofGateway = await refused("gateway", async ({ url }) => {
    for (let n = 0; n < 2; n += 1) {
      const body = { from: "agent://alice" };
      expect((await http.post(`${url}/v1/messages/send`, body, relay.credentials("alice"))).status).toBe(400);
    }
  });
  const id = expect.any(String);
  expect(ofGateway).toEqual([{ event: "refused", kind: "api", id, code: "invalid_request", times: 2 }]);
});

test("has changes of the keys file, by kind and id, and whom they release", async () => {
  const { api_keys, signing_keys } = relay.keys.file as {
    api_keys: { id: string }[];
    signing_keys: { key_id: string; agents: string[] }[];
  };
  const { key_id } = relay.envelope("alice", "agent.heartbeat");
  const [changed] = api_keys as [{ id: string }];
  await relay.writeKeys({
    api_keys: api_keys.map((record) => (record === changed ? { ...record, agents: ["agent://nobody"] } : record)),
    signing_keys: signing_keys.filter((record) => record.key_id !== key_id),
  });
  const changes = {
    event: "keys_changed",
    added: [],
    removed: [{ kind: "key", id: key_id }],
    changed: [{ kind: "api", id: changed.id }],
  };
  expect(await nextLines(1, `${file}-gateway`)).toEqual([changes]);
  expect(await nextLines(2)).toEqual(
    expect.arrayContaining([changes, { event: "released", agent: "agent://alice", reason: expect.any(String) }]),
  );
});

test("has nothing of a keys file that was written again as it was", async () => {
  const loads = () => relay.log.filter((line) => line.includes("keys file changed")).length;
  const before = loads();
  const now = new Date();
  await utimes(relay.keysFile, now, now);
  await until("both services have read it again", () => loads() >= before + 2);
  expect([await newLines(), await newLines(`${file}-gateway`)]).toEqual([[], []]);
});

test("has the window that a reset opened", async () => {
  const link = await relay.link("window-reset");
  await resetWindow(link, { partitions: relay.partitions, deployId: "next", force: true });
  const entered = { event: "window_entered", window: await relay.view().windowId(), deploy: "next" };
  expect(await nextLines(1)).toEqual([entered]);
  expect(await nextLines(1, `${file}-gateway`)).toEqual([entered]);
});

test("has no contents, no address and no secret", async () => {
  const text = `${await readFile(file, "utf8")}${await readFile(`${file}-gateway`, "utf8")}`;
  const secrets = [...relay.keys.keyFiles.values()].map((keyFile) => JSON.stringify(keyFile));
  const private_ = /"(?:private_key|secret)":"([^"]+)"/;
  for (const secret of secrets) expect(text).not.toContain(private_.exec(secret)?.[1] ?? "no secret");
  for (const apiKey of relay.keys.apiKeys.values()) expect(text).not.toContain(apiKey);
  expect(text).not.toMatch(/127\.0\.0\.1|::1|"text"|"sig"/);
});
