import { beforeAll, expect, test } from "@jest/globals";
import { shareOf } from "window/redis/partitions.ts";
import { makeEd25519Key } from "../../deploy/keys/make.ts";
import { ed25519Key, signed } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { scrape } from "../support/scrape.ts";
import { given, useRelay } from "../support/use-relay.ts";

const MOST = 5;
/** Of which more are refused than close a connection, were they in a row; over 12 partitions too. */
const REGISTERS = 50;
const relay = useRelay("alice");
const team = makeEd25519Key({ id: "team-1", agents: ["agent://team.*"] });
const key = ed25519Key("team-1", team.privateKey);
let metricsPort: number;
beforeAll(async () => {
  const { api_keys, signing_keys } = relay.keys.file as { api_keys: object[]; signing_keys: object[] };
  await relay.writeKeys({ api_keys, signing_keys: [...signing_keys, team.record] });
  metricsPort = await freePort();
});
const pod = given(() =>
  relay.startWsConnector({ RELAY_AGENTS_PER_KEY: String(MOST), METRICS_PORT: String(metricsPort) }),
);
const crowd = given(() => relay.connect(pod));

const envelope = (n: number, type: string, fields = {}) => signed(key, { type, from: `agent://team.a${n}`, ...fields });

let refused: number;

test("a namespace key brings as many agents as RELAY_AGENTS_PER_KEY says; others are refused, and nobody is closed for it", async () => {
  const answers = [];
  for (let n = 0; n < REGISTERS; n += 1) answers.push(await crowd.ask(envelope(n, "agent.register")));
  expect(answers.slice(0, MOST)).toMatchObject(Array(MOST).fill({ frame: "ack" }));
  const refusals = answers.filter(({ frame }) => frame === "error");
  refused = refusals.length;
  expect(refusals).toMatchObject(Array(refused).fill({ code: "agents_per_key", retry: "fix" }));
  // Each partition has a share of its own.
  const brought = relay.partitions === 1 ? MOST : relay.partitions * shareOf(MOST, relay.partitions);
  expect(REGISTERS - refused).toBeGreaterThanOrEqual(MOST);
  expect(REGISTERS - refused).toBeLessThanOrEqual(brought);
  expect(crowd.closed).toBeUndefined();
});

test("other keys bring theirs meanwhile", async () => {
  expect((await relay.online(pod, "alice")).closed).toBeUndefined();
});

test("those that it has go on", async () => {
  const alice = await relay.online(pod, "alice");
  expect(await crowd.ask(envelope(0, "agent.heartbeat"))).toMatchObject({ presence: { status: "online" } });
  const message = envelope(0, "message.send", { to: "agent://alice", payload: { message: "hi" } });
  expect(await crowd.ask(message)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await alice.delivered(message.id);
});

test("it stands in the metrics, by limit and by key", async () => {
  const metrics = await scrape(`http://127.0.0.1:${metricsPort}/metrics`);
  expect(metrics.value("relay_limits_total", { limit: "agents_per_key" })).toBe(refused);
  expect(metrics.value("relay_key_refusals_total", { kind: "key", id: "team-1" })).toBe(refused);
});
