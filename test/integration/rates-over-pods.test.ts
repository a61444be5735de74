import { afterAll, expect, test } from "@jest/globals";
import { makeEd25519Key } from "../../deploy/keys/make.ts";
import { type AgentSocket, ed25519Key, signed } from "../support/agent.ts";
import { ownTime } from "../support/own-time.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

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

const relay = useRelay("dave", "erin");
const team = given(async () => {
  const { record, privateKey } = makeEd25519Key({ id: "team-1", agents: ["agent://team.*"] });
  const { signing_keys } = relay.keys.file as { signing_keys: object[] };
  await relay.writeKeys({ ...relay.keys.file, signing_keys: [...signing_keys, record] });
  const key = ed25519Key("team-1", privateKey);
  return { envelope: (name: string, type: string) => signed(key, { type, from: `agent://team.${name}` }) };
});
const pods = [1, 2, 3].map(() => given(() => relay.startWsConnector(LIMITS)));
let members: AgentSocket[] = [];

afterAll(() => {
  // A close frame would wait behind all that the relay has not read yet.
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
    for (const { socket, name } of all) socket.send(team.envelope(name, "agent.heartbeat"));
  }
  return () => members.reduce((sum, { frames }) => sum + frames.length, -before);
}

async function join(pod: Pod, name: string): Promise<{ readonly socket: AgentSocket; readonly name: string }> {
  const socket = await relay.connect(pod);
  expect(await socket.ask(team.envelope(name, "agent.register"))).toMatchObject({ accepted: true });
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

test("A key that floods three pods at once has little more than the rate of one of them in all, and another key at these pods notices nothing", async () => {
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
