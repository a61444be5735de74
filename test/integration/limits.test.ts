import type { Socket } from "node:net";
import { afterAll, describe, expect, test } from "@jest/globals";
import { GUIDE_SURFACES } from "relay-protocol/contract/report-surfaces.ts";
import { generateApiKey } from "relay-protocol/signing/api-key.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { LimitName } from "relay-runtime/metrics/catalogue.ts";
import { shareOf } from "relay-window/redis/partitions.ts";
import { makeEd25519Key } from "../../deploy/keys/make.ts";
import { Secrets } from "../support/admin.ts";
import { type AgentSocket, ed25519Key, signed, tryUpgrade } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { type Scrape, scrape } from "../support/http.ts";
import type { Pod } from "../support/relay.ts";
import { everythingIn } from "../support/test-redis.ts";
import { ownTime } from "../support/time.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Services behind a trusted proxy, which says where their clients are: what an address, a connection and a key may do. */

const CLIENT = "203.0.113.7";
const OTHER_CLIENT = "203.0.113.8";
const CROWD = Array.from({ length: 30 }, (_, n) => `198.51.100.${n + 1}`);
/** Of one network. */
const NEIGHBOURS = ["2001:db8:0:7::1", "2001:db8:0:7:a:b:c:d"] as const;
const PROXY = "192.0.2.1";
const ADDRESSES = [CLIENT, OTHER_CLIENT, ...CROWD, ...NEIGHBOURS, "2001:db8:0:7", PROXY];
const from = (address: string) => ({ "X-Forwarded-For": `${PROXY}, ${address}` });
const AGENTS_PER_KEY = 5;
/** Of which more are refused than close a connection, were they in a row; over 12 partitions too. */
const REGISTERS = 50;

const relay = useRelay("alice", "bob", "carol", "dave", "erin");
const view = given(() => relay.view());
const team = given(async () => {
  const { record, privateKey } = makeEd25519Key({ id: "team-1", agents: ["agent://team.*"] });
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  await relay.writeKeys({ api_keys, signing_keys: [...signing_keys, record] });
  return { key: ed25519Key("team-1", privateKey) };
});
const started: { readonly metrics: () => Promise<Scrape> }[] = [];

async function start(service: "startWsConnector" | "startGateway" | "startOpsReporting", overrides: object = {}) {
  const METRICS_PORT = String(await freePort());
  const pod = await relay[service]({ RELAY_TRUSTED_PROXY_HOPS: "1", METRICS_PORT, ...overrides });
  const metrics = () => scrape(`http://127.0.0.1:${METRICS_PORT}/metrics`);
  const reached = async (limit: LimitName) => (await metrics()).value("relay_limits_total", { limit }) ?? 0;
  const served = { ...pod, metrics, reached };
  started.push(served);
  return served;
}

const narrow = given(() => start("startWsConnector", { RELAY_CONNECTIONS_PER_ADDRESS: "4" }));
const busy = given(() =>
  start("startWsConnector", { RELAY_UNREGISTERED_CONNECTIONS: "5", RELAY_AGENTS_PER_KEY: `${AGENTS_PER_KEY}` }),
);

async function register(pod: Pod, address: string, name: string): Promise<AgentSocket> {
  const socket = await relay.connect(pod, "/ws", from(address));
  expect(await socket.ask(relay.envelope(name, "agent.register"))).toMatchObject({ accepted: true });
  return socket;
}

/** What an upgrade is answered; one that is granted is given up at once. */
async function answerTo(pod: Pod, address: string): Promise<string> {
  const { status, headers, problem } = await tryUpgrade(pod, "/ws", from(address));
  return status === 101 ? "welcome" : `${status} ${problem.code} ${headers["retry-after"]}`;
}

describe("Connections", () => {
  test("over those of one address are refused with 429 and Retry-After, and no other address's", async () => {
    const open: AgentSocket[] = [];
    for (const name of ["alice", "bob", "carol", "dave"]) open.push(await register(narrow, CLIENT, name));
    expect(await answerTo(narrow, CLIENT)).toBe("429 rate_limited 5");
    expect(await narrow.reached("address_connections")).toBe(1);
    expect(await answerTo(narrow, OTHER_CLIENT)).toBe("welcome");
    await open[0]?.close();
    await until("it is granted again", async () => (await answerTo(narrow, CLIENT)) === "welcome");
  });

  test("that stay silent give way with 1013 when there are many, and agents come in all the same", async () => {
    const bob = await register(busy, OTHER_CLIENT, "bob");
    const flood = await Promise.all(CROWD.map((address) => relay.connect(busy, "/ws", from(address))));
    const alice = await register(busy, CLIENT, "alice");
    const dismissed = () => flood.filter(({ closed }) => closed?.code === 1013);
    await until("all but four have given way", () => dismissed().length === CROWD.length - 4);
    expect(await busy.reached("pod_unregistered")).toBe(CROWD.length - 4);
    expect([alice.closed, bob.closed]).toEqual([undefined, undefined]);
    expect(flood.slice(-4).map(({ closed }) => closed)).toEqual(Array(4).fill(undefined));
  });

  test("end with 1008, counted, when they ping faster than they may send envelopes, also all at once", async () => {
    const client = await register(busy, CLIENT, "carol");
    const { _socket: stream } = client.socket as unknown as { _socket: Socket };
    stream.cork();
    for (let n = 0; n < 200 * (CONNECTION_LIMITS.envelopeBurstSeconds + 1); n += 1) client.socket.ping();
    stream.uncork();
    expect(await client.untilClosed()).toBe(1008);
    expect(await busy.reached("pings")).toBe(1);
  });
});

test("A namespace key brings as many agents as RELAY_AGENTS_PER_KEY says; others are refused and counted, and none is closed for it", async () => {
  const crowd = await relay.connect(busy, "/ws", from(CLIENT));
  const answers = [];
  for (let n = 0; n < REGISTERS; n += 1) {
    answers.push(await crowd.ask(signed(team.key, { type: "agent.register", from: `agent://team.a${n}` })));
  }
  expect(answers.slice(0, AGENTS_PER_KEY)).toMatchObject(Array(AGENTS_PER_KEY).fill({ frame: "ack" }));
  const refusals = answers.filter(({ frame }) => frame === "error");
  const refused = refusals.length;
  expect(refusals).toMatchObject(Array(refused).fill({ code: "agents_per_key", retry: "fix" }));
  // Each partition has a share of its own.
  const { partitions } = relay;
  const brought = partitions === 1 ? AGENTS_PER_KEY : partitions * shareOf(AGENTS_PER_KEY, partitions);
  expect(REGISTERS - refused).toBeGreaterThanOrEqual(AGENTS_PER_KEY);
  expect(REGISTERS - refused).toBeLessThanOrEqual(brought);
  expect(crowd.closed).toBeUndefined();
  const { value } = await busy.metrics();
  expect(value("relay_limits_total", { limit: "agents_per_key" })).toBe(refused);
  expect(value("relay_key_refusals_total", { kind: "key", id: "team-1" })).toBe(refused);
});

describe("Guides", () => {
  const ops = given(async () => {
    // Of the three services a gateway opens the window.
    await start("startGateway");
    return await start("startOpsReporting", { RELAY_PUBLIC_REQUESTS_PER_MINUTE: "5" });
  });
  const paths = Object.values(GUIDE_SURFACES).map(({ path }) => path);
  const ask = (path: string, address: string) => fetch(ops.url + path, { headers: from(address) });
  const ofTarget = (n: number) => `${paths[n % paths.length]}?target_agent_id=agent://guess-${n}`;

  test("that read a target are refused beyond an address's five a minute, whichever they are, and counted", async () => {
    for (let n = 0; n < 5; n += 1) expect((await ask(ofTarget(n), CLIENT)).status).toBe(200);
    for (const n of paths.keys()) {
      const refused = await ask(ofTarget(n), CLIENT);
      expect([refused.status, await refused.json()]).toMatchObject([429, { code: "rate_limited" }]);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect(await ops.reached("target_reads")).toBe(paths.length);
    expect((await ask(ofTarget(0), OTHER_CLIENT)).status).toBe(200);
  });

  test("of the whole window are one shared read, and have no limit", async () => {
    for (let n = 0; n < 20; n += 1) expect((await ask(paths[n % paths.length] as string, CLIENT)).status).toBe(200);
  });
});

describe("Requests to the gateway", () => {
  const message = { from: "agent://alice", to: "agent://bob", message: "hello" };
  const gateway = given(() => start("startGateway", { RELAY_PUBLIC_REQUESTS_PER_MINUTE: "5" }));
  const post = (path: string, body: object, headers: Record<string, string>) =>
    fetch(gateway.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const read = (path: string, address: string) => fetch(gateway.url + path, { headers: from(address) });
  const send = (key: object) => post("/v1/messages/send", message, { ...from(CLIENT), ...key });

  test.each<[LimitName, number, (n: number) => Promise<Response>]>([
    ["api_key_requests", 30, () => send(relay.credentials("alice"))],
    ["failed_keys", 60, () => send({ "x-api-key": generateApiKey() })],
    ["feedback", 5, () => post("/api/public/feedback", {}, from(CLIENT))],
    ["self_test", 5, () => post("/api/self-test", {}, from(CLIENT))],
    ["check_online", 5, (n) => read(`/api/onboarding/check-online?agent_id=agent://guess-${n}`, CLIENT)],
    ["session_lookups", 5, (n) => read(`/sessions/ses_${String(n).padStart(26, "0")}`, CLIENT)],
    ["credential_lookups", 5, (n) => read(`/v1/agents/guess-${n}/credential`, CLIENT)],
    ["check_online", 5, (n) => read("/api/onboarding/check-online?agent_id=agent://bob", NEIGHBOURS[n % 2] as string)],
  ])("that %s bounds are refused after %d with 429 and Retry-After, and counted", async (limit, most, ask) => {
    const before = await gateway.reached(limit);
    for (let n = 0; n < most; n += 1) expect((await ask(n)).status).not.toBe(429);
    const refused = await ask(most);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await refused.json()).toMatchObject({ code: "rate_limited", retry_after_ms: expect.any(Number) });
    expect((await gateway.reached(limit)) - before).toBe(1);
  });
});

describe("A key that floods three pods at once", () => {
  /** Of a key: 80 envelopes a second, 100 at once. */
  const LIMITS = { RELAY_ENVELOPES_PER_SECOND: "20" };
  const PER_SECOND = 80;
  const BURST = 100;
  /** Their own rates and bursts together are beyond those of the key. */
  const CONNECTIONS = 8;
  /** What a key has before pods know of each other: a burst, a second until the lease, and one envelope a connection. */
  const HEAD_START = BURST + PER_SECOND + CONNECTIONS;
  const MEASURED_SECONDS = 2;
  /** Leases begin and are renewed once a second, later where the machine is busy: until then a pod has what it has alone. */
  const MOST_WINDOWS = 4;
  const pods = [1, 2, 3].map(() => given(() => relay.startWsConnector(LIMITS)));
  const envelope = (name: string, type: string) => signed(team.key, { type, from: `agent://team.${name}` });
  let members: AgentSocket[] = [];
  // A close frame would wait behind all that the relay has not read yet.
  afterAll(() => {
    for (const { socket } of members) socket.terminate();
  });

  /** Has one key send as fast as it can over several connections at each pod. Returns how many were answered so far. */
  async function flood(seconds: number): Promise<() => number> {
    const each = Math.ceil((HEAD_START + 2 * seconds * PER_SECOND) / CONNECTIONS);
    const joined = pods.flatMap((pod, p) => Array.from({ length: CONNECTIONS }, (_, n) => join(pod, `p${p}n${n}`)));
    const all = await Promise.all(joined);
    members = all.map(({ socket }) => socket);
    const before = all.reduce((sum, { socket }) => sum + socket.frames.length, 0);
    for (let n = 0; n < each; n += 1) {
      for (const { socket, name } of all) socket.send(envelope(name, "agent.heartbeat"));
    }
    return () => members.reduce((sum, { frames }) => sum + frames.length, -before);
  }

  async function join(pod: Pod, name: string): Promise<{ readonly socket: AgentSocket; readonly name: string }> {
    const socket = await relay.connect(pod);
    expect(await socket.ask(envelope(name, "agent.register"))).toMatchObject({ accepted: true });
    return { socket, name };
  }

  /** How many a second are answered. */
  async function rateOf(answered: () => number, count: number): Promise<number> {
    const [from, begun] = [answered(), performance.now()];
    await until("that many are answered", () => answered() >= from + count);
    return ((answered() - from) * 1000) / (performance.now() - begun);
  }

  /** The lowest rate of a few windows, the first that is low enough being the last. */
  async function settledRate(answered: () => number, bound: number): Promise<number> {
    const rates: number[] = [];
    while (rates.length < MOST_WINDOWS && !rates.some((rate) => rate < bound)) {
      rates.push(await rateOf(answered, MEASURED_SECONDS * PER_SECOND));
    }
    return Math.min(...rates);
  }

  test("has little more than the rate of one of them in all, and another key at these pods notices nothing", async () => {
    const dave = await relay.online(pods[0] as Pod, "dave");
    await relay.online(pods[1] as Pod, "erin");
    const answered = await flood(MEASURED_SECONDS * MOST_WINDOWS);
    await until("the head start is used up", () => answered() >= pods.length * HEAD_START);
    const rate = settledRate(answered, PER_SECOND * 1.3);
    for (let n = 0; n < 20; n += 1) {
      const message = relay.envelope("dave", "message.send", { to: "agent://erin", payload: { message: `${n}` } });
      const answer = await Promise.race([dave.ask(message), ownTime(700)]);
      expect(answer).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
    }
    expect(await rate).toBeLessThan(PER_SECOND * 1.3);
  }, 60_000);
});

test("No client address is in Redis, in a log line or in a metric after all that, nor a hash that could be guessed", async () => {
  expect(await view.names("relay:{*}:limit:address*")).not.toEqual([]);
  expect(relay.log.length).toBeGreaterThan(5);
  const secrets = new Secrets(Object.fromEntries(ADDRESSES.map((address) => [address, address])));
  const kept = await Promise.all((await view.servers()).map((server) => everythingIn(server)));
  const metrics = await Promise.all(started.map(async (served) => (await served.metrics()).text));
  expect([...kept, relay.log.join("\n"), ...metrics].flatMap((text) => secrets.in(text))).toEqual([]);
});
