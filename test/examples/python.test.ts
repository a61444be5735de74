import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { testVectors } from "protocol/signing/test-vectors.ts";
import { WireProxy } from "../../connector/test/wire-proxy.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { canonical, type Frame, jcs } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { PYTHON_EXAMPLE, PythonAgent } from "./python-agent.ts";

const VECTORS = new URL("../../../shared/vectors/jcs/input/", import.meta.url);

const relay = useRelay("alice", "bob", "carol-hmac");
const agents: PythonAgent[] = [];
const proxies: WireProxy[] = [];
const pod = given(() => relay.startWsConnector());
const alice = given(() => relay.online(pod, "alice"));
afterEach(async () => {
  for (const agent of agents) await agent.stop();
  for (const proxy of proxies) await proxy.stop();
  const printed = agents.map((agent) => agent.printed).join("");
  for (const { private_key, secret } of relay.keys.keyFiles.values() as Iterable<Frame>) {
    expect(printed).not.toContain(private_key ?? secret);
  }
  agents.length = proxies.length = 0;
});

/** The example, as the agent of this name. */
async function start(name: string, url = pod.url, ...args: string[]): Promise<PythonAgent> {
  const keyFile = `${relay.keysFile}.${name}.json`;
  await writeFile(keyFile, JSON.stringify(relay.keys.keyFiles.get(name)), { mode: 0o600 });
  const agent = new PythonAgent(["--key", keyFile, "--url", url, ...args]);
  agents.push(agent);
  return agent;
}

/** The same, once it is registered. */
async function online(name: string, url?: string, ...args: string[]): Promise<PythonAgent> {
  const agent = await start(name, url, ...args);
  await agent.says(`agent://${name} is online`);
  return agent;
}

async function proxied(heartbeatIntervalMs?: number): Promise<WireProxy> {
  const proxy = await new WireProxy(pod.url, heartbeatIntervalMs).start();
  proxies.push(proxy);
  return proxy;
}

function httpUrl(proxy: WireProxy): string {
  return proxy.url.replace("ws", "http");
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
  test("registers, and replies to a message with an envelope that its key has signed", async () => {
    await online(name);
    const reply = await replyTo(await send(name, "message.send", { payload: { message: "hello" } }));
    expect(reply).toMatchObject({ type: "message.reply", from: `agent://${name}`, payload: { message: "hello" } });
    expect(relay.keys.agents.get(name)?.sign(canonical(reply))).toBe(reply.sig);
  });

  test("signs every payload as the relay does: Unicode, depth and numbers", async () => {
    const agent = await online(name);
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
});

describe("the Python example", () => {
  test("does not reply to a reply: two of them do not talk for ever", async () => {
    await online("bob");
    const reply = await send("bob", "message.reply");
    await replyTo(await send("bob", "message.send"));
    expect(alice.deliveries.filter(({ envelope }) => envelope.task_id === reply)).toEqual([]);
  });

  test("sends nothing that the relay would close the connection for as too long", async () => {
    const agent = await online("bob");
    const task_id = "t".repeat(128);
    const rest = canonical(relay.envelope("alice", "message.send", { to: "agent://bob", task_id, payload: { m: "" } }));
    await send("bob", "message.send", { task_id, payload: { m: "x".repeat(32_768 - rest.length - 100) } });
    await agent.says("message.reply is too long for the relay: not sent");
    await replyTo(await send("bob", "message.send"));
    expect(agent.printed).not.toContain("offline");
  });

  test("approves sessions when it is told to", async () => {
    await online("bob", pod.url, "--approve-sessions");
    const request = relay.envelope("alice", "session.request", { to: "agent://bob", payload: { purpose: "talk" } });
    const { session_id } = await alice.ask(request);
    const isDecision = ({ frame, envelope }: Frame) => frame === "deliver" && envelope.type === "session.approve";
    expect(await alice.next("a decision", isDecision)).toMatchObject({ session_id, envelope: { from: "agent://bob" } });
  });

  test("sends heartbeats in the interval that hello names", async () => {
    const proxy = await proxied(20);
    const acks: Frame[] = [];
    proxy.toAgent = (frame) => {
      if (frame.frame === "ack") acks.push(frame.type);
      return frame;
    };
    await online("bob", httpUrl(proxy));
    await until("three heartbeats are accepted", () => acks.length >= 4);
    expect(acks.slice(0, 4)).toEqual(["agent.register", ...Array(3).fill("agent.heartbeat")]);
  });

  test("goes by the relay's clock", async () => {
    const proxy = await proxied();
    let relayTime = 0;
    proxy.toAgent = (frame) => {
      if (frame.frame === "hello") relayTime = frame.server_time += 3_600_000;
      return frame;
    };
    const agent = await start("bob", httpUrl(proxy));
    expect(await agent.end()).toBe(1);
    expect(agent.printed).toContain("The relay refused to register the agent. clock_skew: ");
    expect(Math.abs(proxy.sent[0].ts - relayTime)).toBeLessThan(60_000);
  });

  test("comes back after its pod was killed, and replies again", async () => {
    const doomed = await relay.startWsConnectorProcess();
    const agent = await online("bob", doomed.url);
    await doomed.end("SIGKILL");
    await agent.says("offline (");
    await relay.startWsConnectorProcess({ PORT: String(doomed.port) });
    await agent.says("agent://bob is online", 2);
    await replyTo(await send("bob", "message.send"));
  });

  test("comes back when a draining pod told it to", async () => {
    const leaving = await relay.startWsConnector();
    const proxy = await proxied();
    proxy.toAgent = (frame) => (frame.notice === "draining" ? { ...frame, reconnect_after_ms: 1234 } : frame);
    proxy.lead(leaving.url);
    const agent = await online("bob", httpUrl(proxy));
    proxy.lead(pod.url);
    await leaving.stop();
    await agent.says("agent://bob is online", 2);
    expect(agent.printed).toMatch(/notice: draining\noffline \(1001.*\), trying again in 1\.2 s\n/);
  });

  test("tries again when the relay cannot register it just now", async () => {
    const proxy = await proxied();
    const refusal = { frame: "error", code: "unavailable", message: "Not now.", hint: "Again.", retry_after_ms: 1 };
    proxy.toAgent = (frame) => (frame.frame === "ack" && proxy.connections === 1 ? refusal : frame);
    const agent = await online("bob", httpUrl(proxy));
    expect(proxy.connections).toBe(2);
    expect(agent.printed).toContain("offline (unavailable: Not now. Again.)");
  });

  test("ends when the agent registers elsewhere", async () => {
    const agent = await online("bob");
    const successor = await relay.online(pod, "bob");
    expect(await agent.end()).toBe(1);
    expect(agent.printed).toContain("The relay closed the connection for good: 4409 superseded.");
    await successor.close();
  });

  test("ends when its key is revoked, and does not start with such a key", async () => {
    const agent = await online("bob");
    await relay.writeKeys({
      ...relay.keys.file,
      signing_keys: signingKeys().filter(({ agents }) => agents[0] !== "agent://bob"),
    });
    expect(await agent.end()).toBe(1);
    expect(agent.printed).toContain("The relay closed the connection for good: 4403 key revoked or expired.");
    const late = await start("bob");
    expect(await late.end()).toBe(1);
    expect(late.printed).toContain("The relay refused to register the agent. unknown_key: ");
    await relay.writeKeys(relay.keys.file);
  });

  test("ends quietly on Ctrl-C", async () => {
    const agent = await online("carol-hmac");
    expect(await agent.stop("SIGINT")).toBe(0);
    expect(agent.printed).toBe("agent://carol-hmac is online\n");
  });

  test("says what is wrong with a key file", async () => {
    const missing = new PythonAgent([], { RELAY_KEY_FILE: "/nowhere.json" });
    expect(await missing.end()).toBe(1);
    expect(missing.printed).toMatch(/^The key file cannot be used: .*No such file.*\n$/);
  });
});

describe("its canonical text", () => {
  test("has every number as ECMAScript writes it", async () => {
    const bits = fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { minLength: 2, maxLength: 2 });
    const doubles = fc
      .sample(bits, 5000)
      .map((halves) => new Float64Array(Int32Array.from(halves).buffer)[0] as number);
    const exponents = Array.from({ length: 60 }, (_, i) => 1.25 * 10 ** (i - 30));
    const numbers = [...doubles, ...exponents, ...fc.sample(fc.double({ noNaN: true }), 1000)].filter(Number.isFinite);
    expect(await canonicalInPython(numbers)).toBe(jcs(numbers));
  });

  test("refuses what readers would take for something else", async () => {
    for (const value of ["2 ** 53", "float('inf')", "float('nan')"]) {
      await expect(python(`agent.jcs({"value": ${value}})`)).rejects.toThrow("ValueError");
    }
  });
});

/** Its canonical text of numbers, each a double. */
async function canonicalInPython(numbers: readonly number[]): Promise<string> {
  const file = `${relay.keysFile}.numbers`;
  await writeFile(file, JSON.stringify(numbers));
  return await python(`print(agent.jcs([float(value) for value in json.load(open(${JSON.stringify(file)}))]), end="")`);
}

/** What a line prints that has the example as module `agent`. */
async function python(line: string): Promise<string> {
  const code = `import json, agent\n${line}`;
  const options = { cwd: dirname(PYTHON_EXAMPLE), maxBuffer: 10_000_000 };
  return (await promisify(execFile)(pythonProgram(), ["-B", "-c", code], options)).stdout;
}

function signingKeys(): readonly { readonly agents: readonly string[] }[] {
  return (relay.keys.file as { signing_keys: { agents: string[] }[] }).signing_keys;
}
