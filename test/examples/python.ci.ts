import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { testVectors } from "relay-protocol/signing/test-vectors.ts";
import { WireProxy } from "../../connector/test/wire-proxy.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { canonical, type Frame } from "../support/agent.ts";
import { serveWhole } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { PYTHON_SOURCES, PythonAgent } from "./python-agent.ts";

const VECTORS = new URL("../../../shared/vectors/jcs/input/", import.meta.url);

const relay = useRelay("alice", "bob", "carol-hmac");
const agents: PythonAgent[] = [];
const pod = given(() => serveWhole(relay));
const alice = given(() => relay.online(pod, "alice"));

/** Ends the agents that run, none of which has shown a secret. */
async function stopAll(): Promise<void> {
  for (const agent of agents) await agent.stop();
  const printed = agents.map((agent) => agent.printed).join("");
  for (const { private_key, secret } of relay.keys.keyFiles.values() as Iterable<Frame>) {
    expect(printed).not.toContain(private_key ?? secret);
  }
  agents.length = 0;
}

/** The example, as the agent of this name. @param changes of its key file. */
async function start(name: string, url = pod.url, changes: object = {}): Promise<PythonAgent> {
  const keyFile = `${relay.keysFile}.${name}.json`;
  await writeFile(keyFile, JSON.stringify({ ...relay.keys.keyFiles.get(name), ...changes }), { mode: 0o600 });
  const agent = new PythonAgent([keyFile, url]);
  agents.push(agent);
  return agent;
}

/** The same, once it is registered. */
async function online(name: string, url?: string): Promise<PythonAgent> {
  const agent = await start(name, url);
  await agent.says(`agent://${name} is online`);
  return agent;
}

/** Alice sends; resolves with the envelope's id. */
async function send(name: string, type: string, fields: object = {}): Promise<string> {
  const envelope = relay.envelope("alice", type, { to: `agent://${name}`, ...fields });
  expect(await alice.ask(envelope)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  return envelope.id;
}

/** What alice is sent about that envelope. */
async function replyTo(id: string): Promise<Frame> {
  const isReply = ({ frame, envelope }: Frame) => frame === "deliver" && envelope.task_id === id;
  return (await alice.next(`a reply to ${id}`, isReply)).envelope;
}

describe.each(["bob", "carol-hmac"])("the Python example as agent://%s", (name) => {
  let agent: PythonAgent;
  beforeAll(async () => {
    agent = await online(name);
  });
  afterAll(stopAll);

  test("registers, and replies to a message with an envelope that its key has signed", async () => {
    const reply = await replyTo(await send(name, "message.send", { payload: { message: "hello" } }));
    expect(reply).toMatchObject({ type: "message.reply", from: `agent://${name}`, payload: { message: "hello" } });
    expect(relay.keys.agents.get(name)?.sign(canonical(reply))).toBe(reply.sig);
  });

  test("signs every payload as the relay does: Unicode, depth and numbers", async () => {
    const inputs = existsSync(VECTORS) ? readdirSync(VECTORS) : [];
    const payloads = [
      ...testVectors().map(({ envelope }) => envelope.payload),
      ...inputs.map((input) => ({ value: JSON.parse(readFileSync(new URL(input, VECTORS), "utf8")) })),
      { numbers: [9007199254740991, 9007199254740992, 999999999999999700000, 1e21, 1e-6, 1e-7, 5e-324, 1e15, 1e16] },
      { "": "", "\u007f": "\u2028\ufeff\b\t", "\u{1f602}": null, "\ufb33": true },
    ];
    for (const payload of payloads) {
      expect((await replyTo(await send(name, "message.send", { payload }))).payload).toEqual(payload);
    }
    expect(agent.printed).not.toContain("bad_signature");
  });

  test("does not reply to a reply: two of them do not talk for ever", async () => {
    const reply = await send(name, "message.reply");
    await replyTo(await send(name, "message.send"));
    expect(alice.deliveries.filter(({ envelope }) => envelope.task_id === reply)).toEqual([]);
  });

  test("approves sessions", async () => {
    const request = relay.envelope("alice", "session.request", {
      to: `agent://${name}`,
      payload: { purpose: "talk" },
    });
    const { session_id } = await alice.ask(request);
    const isDecision = ({ frame, envelope }: Frame) =>
      frame === "deliver" && envelope.type === "session.approve" && envelope.from === `agent://${name}`;
    expect(await alice.next("a decision", isDecision)).toMatchObject({ session_id });
  });
});

describe("the Python example", () => {
  afterEach(stopAll);

  test("sends nothing that the relay would close the connection for as too long", async () => {
    const agent = await online("bob");
    const task_id = "t".repeat(128);
    const rest = canonical(relay.envelope("alice", "message.send", { to: "agent://bob", task_id, payload: { m: "" } }));
    await send("bob", "message.send", { task_id, payload: { m: "x".repeat(32_768 - rest.length - 100) } });
    await agent.says("frame_too_large: ");
    await replyTo(await send("bob", "message.send"));
    expect(agent.printed).not.toContain("is not connected");
  });

  test("comes back after its pod was killed, and replies again", async () => {
    const [doomed, view] = [await relay.startWsConnectorProcess(), relay.view()];
    const proxy = await new WireProxy(doomed.url).start();
    proxy.presence = async (path) => await (await fetch(`${pod.url}${path}`)).text();
    const agent = await online("bob", proxy.url);
    const before = (await view.route("bob"))?.connection;
    proxy.lead(pod.url);
    await doomed.end("SIGKILL");
    await agent.says("agent://bob is not connected");
    await until("bob is back", async () => ![before, undefined].includes((await view.route("bob"))?.connection));
    await replyTo(await send("bob", "message.send"));
    await proxy.stop();
  });

  test("ends when the agent registers elsewhere", async () => {
    const agent = await online("bob");
    const successor = await relay.online(pod, "bob");
    expect(await agent.end()).toBe(1);
    expect(agent.printed).toContain("superseded: ");
    await successor.close();
  });

  test("ends when its key is revoked", async () => {
    const agent = await online("bob");
    await relay.writeKeys({
      ...relay.keys.file,
      signing_keys: signingKeys().filter(({ agents }) => agents[0] !== "agent://bob"),
    });
    expect(await agent.end()).toBe(1);
    expect(agent.printed).toContain("key_revoked: ");
    await relay.writeKeys(relay.keys.file);
  });

  test("does not start with a key that the relay refuses", async () => {
    const { key_id } = relay.keys.keyFiles.get("alice") as Frame;
    const agent = await start("bob", pod.url, { key_id });
    expect(await agent.end()).toBe(1);
    expect(agent.printed).toContain("bad_signature: ");
  });

  test("ends quietly on Ctrl-C", async () => {
    const agent = await online("carol-hmac");
    expect(await agent.stop("SIGINT")).toBe(0);
    expect(agent.printed).toBe("agent://carol-hmac is online\n");
  });

  test.each(["agent.py", "verify.py"])("says in a line which Python lacks what it needs: %s", (program) => {
    const env = { PYTHONPATH: PYTHON_SOURCES, PYTHONDONTWRITEBYTECODE: "1" };
    // -S: without the packages that are installed for it.
    const args = ["-S", fileURLToPath(new URL(`../../examples/python/${program}`, import.meta.url))];
    const { status, stderr } = spawnSync(pythonProgram(), args, { env, encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    for (const part of [pythonProgram(), /websockets|cryptography/]) expect(stderr).toMatch(part);
  });

  test("says what is wrong with a key file", async () => {
    const missing = new PythonAgent(["/nowhere.json"]);
    expect(await missing.end()).toBe(1);
    expect(missing.printed).toMatch(/^invalid_key: /);
  });
});

function signingKeys(): readonly { readonly agents: readonly string[] }[] {
  return (relay.keys.file as { signing_keys: { agents: string[] }[] }).signing_keys;
}
