import { afterEach, expect, test } from "@jest/globals";
import { CONTROL_SLOT } from "relay-window/redis/partitions.ts";
import { FIRST_START } from "../../../connector/src/limits.ts";
import { record, WholeStage } from "../../../connector/test/kit.ts";
import { ClusterRelay } from "../../cluster/support/cluster-relay.ts";
import { DriverProcess } from "../../connectors/driver-process.ts";
import type { Frame } from "../../support/agent.ts";
import { until } from "../../support/until.ts";
import { use } from "../../support/use-relay.ts";
import { slotOfAgent } from "../fleet.ts";

/** Of each shard more than one. */
const NAMES = ["ada", "flo", "hal", "mia", "quy", "alice", "bob", "carol", "dave", "erin"];
/** A refused look-up asks for a second of patience, and a connection ends that does not register for ten. */
const PATIENCE_MS = 40_000;

class ClusterStage extends WholeStage {
  override readonly relay = new ClusterRelay();
}

const stage = use(new ClusterStage(...NAMES));

let driver: DriverProcess | undefined;
afterEach(async () => {
  await driver?.stop();
});

/** Calls a method of a connector in Python, which the first call makes. */
function inPython(name: string): (does: string, given?: object) => Promise<Frame> {
  const { agent, keyId, key } = stage.agent(name);
  const { privateKey: private_key } = key as { privateKey: string };
  const options = { url: stage.url, agent, key: { key_id: keyId, alg: "ed25519", private_key }, listens: false };
  const python = new DriverProcess("python");
  driver = python;
  return async (does, given = {}) => await python.call(name, does, given, options);
}

/** Two agents whose partitions lie at one primary, which has not the control slot. */
async function neighbours() {
  const { cluster } = stage.relay;
  const control = await cluster.primaryOf(CONTROL_SLOT);
  const primaries = await Promise.all(NAMES.map((name) => cluster.primaryOf(slotOfAgent(stage.agent(name).agent))));
  const primary = primaries.find((one, n) => one !== control && primaries.indexOf(one) !== n) as typeof control;
  const [here, there] = NAMES.filter((_, n) => primaries[n] === primary) as [string, string];
  return { here, there, primary };
}

test("First starts after the SIGKILL of their agents' primary go on, and are online once its replica is promoted", async () => {
  const { cluster } = stage.relay;
  const { here, there, primary } = await neighbours();
  const replica = await cluster.replicaOf(primary);
  const connector = stage.connector(here, stage.url);
  const { errors } = record(connector);
  const call = inPython(there);

  // It is promoted when the test has it go on, however long that takes.
  await replica.ask("CONFIG SET cluster-replica-validity-factor 0");
  await cluster.pause(replica);
  await cluster.kill(primary);
  const starts = Promise.all([connector.start(), call("start")]);
  const isToldOften = (told: readonly { code?: string }[]) =>
    told.filter(({ code }) => code === "unavailable").length > FIRST_START.looks;
  const toldInPython = () => (driver as DriverProcess).unheard(there, "error") as { code?: string }[];
  const areTold = until("they are told so", () => isToldOften(errors) && isToldOften(toldInPython()), PATIENCE_MS);
  await Promise.race([areTold, starts]);
  await cluster.resume(replica);
  await cluster.letTakeOver(replica);
  await cluster.untilPrimary(replica);
  await starts;

  expect(connector.state.status).toBe("online");
  expect(await call("send", { to: stage.agent(here).agent, payload: { n: 1 } })).toMatchObject({
    delivery: { can_deliver_realtime: true },
  });
});
