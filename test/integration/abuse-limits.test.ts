import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import { makeEd25519Key } from "../../deploy/keys/make.ts";
import { encode, frame, OPCODES } from "../hostile/support/frames.ts";
import { type AgentSocket, ed25519Key, signed } from "../support/agent.ts";
import { tryUpgrade } from "../support/try-upgrade.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";
import {
  CLIENT,
  CROWD,
  from,
  NEIGHBOURS,
  OTHER_CLIENT,
  type ProxiedService,
  ProxiedServices,
} from "./proxied-services.ts";

const AGENTS = ["alice", "bob", "carol", "dave"] as const;
/** 2000 members, the last of which come first in canonical form. */
const UNSORTED = Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`m${9999 - n}`, n]));
const relay = useRelay(...AGENTS);
const team = given(async () => {
  const { record, privateKey } = makeEd25519Key({ id: "team-1", agents: ["agent://team.*"] });
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  await relay.writeKeys({ api_keys, signing_keys: [...signing_keys, record] });
  const key = ed25519Key("team-1", privateKey);
  return { envelope: (n: number, type: string) => signed(key, { type, from: `agent://team.${n}` }) };
});
const services = new ProxiedServices(relay);
const silentPod = given(() => services.start("startWsConnector"));
const silent = given(() => connect(silentPod, CLIENT));
/** The pods of one test. */
const pods: ProxiedService[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all(pods.splice(0).map((pod) => services.stop(pod)));
});

async function startPod(overrides: Record<string, string> = {}): Promise<ProxiedService> {
  const pod = await services.start("startWsConnector", overrides);
  pods.push(pod);
  return pod;
}

async function connect(pod: ProxiedService, address: string): Promise<AgentSocket> {
  return await relay.connect(pod, "/ws", from(address));
}

async function register(socket: AgentSocket, name: string): Promise<AgentSocket> {
  expect(await socket.ask(relay.envelope(name, "agent.register"))).toMatchObject({ accepted: true });
  return socket;
}

/** What an upgrade is answered; one that is granted is given up at once. */
async function answerTo(pod: ProxiedService, address: string): Promise<string> {
  const { status, headers, problem } = await tryUpgrade(pod, "/ws", from(address));
  return status === 101 ? "welcome" : `${status} ${problem.code} ${headers["retry-after"]}`;
}

const untilWelcome = (pod: ProxiedService, address: string) =>
  until("the upgrade is granted again", async () => (await answerTo(pod, address)) === "welcome");

describe("Connections", () => {
  test("of a full pod are refused with 503 and Retry-After, and counted, until one ends", async () => {
    const pod = await startPod({ RELAY_MAX_CONNECTIONS: "1" });
    const only = await connect(pod, CLIENT);
    expect(await answerTo(pod, OTHER_CLIENT)).toBe("503 over_capacity 5");
    expect(await pod.reached("pod_connections")).toBe(1);
    await only.close();
    await untilWelcome(pod, OTHER_CLIENT);
  });

  test("over those of one address are refused with 429 and Retry-After, and no other address's", async () => {
    const pod = await startPod({ RELAY_CONNECTIONS_PER_ADDRESS: "4" });
    const open: AgentSocket[] = [];
    for (const name of AGENTS) open.push(await register(await connect(pod, CLIENT), name));
    expect(await answerTo(pod, CLIENT)).toBe("429 rate_limited 5");
    expect(await pod.reached("address_connections")).toBe(1);
    expect(await answerTo(pod, OTHER_CLIENT)).toBe("welcome");
    await open[0]?.close();
    await untilWelcome(pod, CLIENT);
  });

  test("of one address that have not registered are refused beyond half as many, until one of them registers", async () => {
    const pod = await startPod({ RELAY_CONNECTIONS_PER_ADDRESS: "4" });
    const newcomer = await connect(pod, CLIENT);
    await connect(pod, CLIENT);
    expect(await answerTo(pod, CLIENT)).toBe("429 rate_limited 5");
    expect(await pod.reached("address_unregistered")).toBe(1);
    await register(newcomer, "alice");
    await untilWelcome(pod, CLIENT);
  });

  test("that one address opens and closes are refused beyond twice as many, until the minute is over", async () => {
    const pod = await startPod({ RELAY_CONNECTIONS_PER_ADDRESS: "2" });
    for (let n = 0; n < 4; n += 1) await untilWelcome(pod, CLIENT);
    await until("the last of them has ended", async () => (await answerTo(pod, CLIENT)) !== "429 rate_limited 5");
    const refusal = await answerTo(pod, CLIENT);
    expect(refusal).toMatch(/^429 rate_limited [2-6]\d$/);
    expect(await pod.reached("address_opens")).toBeGreaterThan(0);
    expect(await answerTo(pod, OTHER_CLIENT)).toBe("welcome");

    const { now } = performance;
    jest.spyOn(performance, "now").mockImplementation(() => now.call(performance) + 60_000);
    expect(await answerTo(pod, CLIENT)).toBe("welcome");
  });

  test("from one IPv6 network count as those of one address", async () => {
    const pod = await startPod({ RELAY_CONNECTIONS_PER_ADDRESS: "1" });
    await register(await connect(pod, NEIGHBOURS[0]), "alice");
    expect(await answerTo(pod, NEIGHBOURS[1])).toBe("429 rate_limited 5");
    expect(await answerTo(pod, "2001:db8:0:8::1")).toBe("welcome");
  });

  test("that stay silent give way with 1013 when there are many, and agents come in all the same", async () => {
    const pod = await startPod({ RELAY_UNREGISTERED_CONNECTIONS: "5" });
    const bob = await register(await connect(pod, OTHER_CLIENT), "bob");
    const flood = await Promise.all(CROWD.map((address) => connect(pod, address)));
    const alice = await register(await connect(pod, CLIENT), "alice");
    const dismissed = () => flood.filter(({ closed }) => closed?.code === 1013);
    await until("all but four have given way", () => dismissed().length === CROWD.length - 4);
    expect(await pod.reached("pod_unregistered")).toBe(CROWD.length - 4);
    expect([alice.closed, bob.closed]).toEqual([undefined, undefined]);
    expect(flood.slice(-4).map(({ closed }) => closed)).toEqual(Array(4).fill(undefined));
  });

  test("have no limit of their own for an address, nor for newcomers, where the settings say 0", async () => {
    const pod = await startPod({ RELAY_CONNECTIONS_PER_ADDRESS: "0", RELAY_UNREGISTERED_CONNECTIONS: "0" });
    const open = await Promise.all(CROWD.map(() => connect(pod, CLIENT)));
    await register(await connect(pod, CLIENT), "alice");
    expect(open.filter(({ closed }) => closed !== undefined)).toEqual([]);
  });
});

describe("What one connection sends", () => {
  test("waits beyond its allowance, which is counted once a pause, and nobody else waits", async () => {
    const pod = await startPod({ RELAY_ENVELOPES_PER_SECOND: "5" });
    const greedy = await register(await connect(pod, CLIENT), "carol");
    const bystander = await register(await connect(pod, OTHER_CLIENT), "dave");
    const sent = Array.from({ length: 80 }, () => relay.envelope("carol", "agent.heartbeat"));
    for (const envelope of sent) greedy.send(envelope);
    const answered = () => greedy.frames.slice(2);
    await until("the burst is used up", () => answered().length >= 24);
    expect(await bystander.ask(relay.envelope("dave", "agent.heartbeat"))).toMatchObject({ accepted: true });
    expect(answered().length).toBeLessThan(sent.length);
    expect(await pod.reached("envelopes")).toBe(1);
    const acks = answered().filter(({ frame }) => frame === "ack");
    expect(acks.map(({ envelope_id }) => envelope_id)).toEqual(sent.slice(0, acks.length).map(({ id }) => id));
  });

  test("under one key has four times the allowance, over all connections of that key, and no other key waits", async () => {
    const pod = await startPod({ RELAY_ENVELOPES_PER_SECOND: "5" });
    const EACH = 10;
    const bystander = await register(await connect(pod, OTHER_CLIENT), "dave");
    const members = await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        const socket = await connect(pod, CLIENT);
        expect(await socket.ask(team.envelope(n, "agent.register"))).toMatchObject({ accepted: true });
        return socket;
      }),
    );
    for (const [n, socket] of members.entries()) {
      for (let count = 0; count < EACH; count += 1) socket.send(team.envelope(n, "agent.heartbeat"));
    }
    const answered = () => members.flatMap(({ frames }) => frames.filter(({ frame }) => frame === "ack")).length;
    await until("the burst of the key is used up", () => answered() >= 30);
    expect(await bystander.ask(relay.envelope("dave", "agent.heartbeat"))).toMatchObject({ accepted: true });
    expect(answered()).toBeLessThan(8 * (1 + EACH));
    expect(await pod.reached("key_envelopes")).toBeGreaterThan(0);
    expect(await pod.reached("envelopes")).toBe(0);
    await until("all are answered", () => answered() === 8 * (1 + EACH));
  });

  test("while it is read for nothing costs others nothing: envelopes of unknown keys are not made canonical", async () => {
    const pod = await startPod({ RELAY_CONNECTIONS_PER_ADDRESS: "0" });
    const bystander = await register(await connect(pod, OTHER_CLIENT), "dave");
    const flood = await Promise.all(CROWD.map((address) => connect(pod, address)));
    const costly = JSON.stringify({ ...relay.envelope("alice", "message.send"), key_id: "nobody", payload: UNSORTED });
    for (const socket of flood) for (let n = 0; n < 9; n += 1) socket.send(costly);
    expect(await bystander.ask(relay.envelope("dave", "agent.heartbeat"))).toMatchObject({ accepted: true });
    const newcomer = await register(await connect(pod, CLIENT), "carol");
    await until("the flood is over", () => flood.every(({ closed }) => closed !== undefined));
    expect(new Set(flood.map(({ closed }) => closed?.code))).toEqual(new Set([1008]));
    const answers = flood.flatMap(({ frames }) => frames.filter(({ frame }) => frame === "error"));
    expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(["unknown_key"]));
    expect(await pod.reached("unregistered_intake")).toBe(flood.length);
    expect([bystander.closed, newcomer.closed]).toEqual([undefined, undefined]);
  });

  test("ends it with 1008 after twenty refusals in a row, counted once", async () => {
    const pod = await startPod();
    const socket = await register(await connect(pod, CLIENT), "carol");
    for (let n = 0; n < 25; n += 1) socket.send("no envelope");
    expect(await socket.untilClosed()).toBe(1008);
    expect(await pod.reached("refusals_in_a_row")).toBe(1);
    await register(await connect(pod, CLIENT), "carol");
  });

  test("ends it with 1008, counted, when it pings faster than it may send envelopes, also all at once", async () => {
    const pod = await startPod();
    const client = await register(await connect(pod, CLIENT), "carol");
    const { _socket: stream } = client.socket as unknown as { _socket: Socket };
    stream.cork();
    for (let n = 0; n < 200 * (CONNECTION_LIMITS.envelopeBurstSeconds + 1); n += 1) client.socket.ping();
    stream.uncork();
    expect(await client.untilClosed()).toBe(1008);
    expect(await pod.reached("pings")).toBe(1);
  });

  test("ends it with 1008, counted, when a text never ends, however many pongs keep its fragments apart", async () => {
    const pod = await startPod({ RELAY_ENVELOPES_PER_SECOND: "1000" });
    const client = await register(await connect(pod, CLIENT), "carol");
    const { _socket: stream } = client.socket as unknown as { _socket: Socket };
    const { pong, text, continuation } = OPCODES;
    const pongs = Array.from({ length: 200 }, () => encode(frame(pong, Buffer.alloc(125))));
    stream.write(encode(frame(text, "x", { fin: false })));
    while (client.closed === undefined) {
      stream.write(Buffer.concat([...pongs, encode(frame(continuation, "x", { fin: false }))]));
      await setImmediate();
    }
    expect(client.closed.code).toBe(1008);
    expect(await pod.reached("unfinished_text")).toBe(1);
  });

  test("ends it with 1008, counted, when it is nothing for ten seconds", async () => {
    expect(await silent.untilClosed(15_000)).toBe(1008);
    expect(await silentPod.reached("register_within")).toBe(1);
  });
});

test("No client address is in Redis, in a log line or in a metric after all that, nor a hash that could be guessed", async () => {
  expect(relay.log.length).toBeGreaterThan(5);
  expect(await services.addressesKept()).toEqual([]);
});
