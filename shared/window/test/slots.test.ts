import { afterAll, beforeAll, expect, test } from "@jest/globals";
import slotOf from "cluster-key-slot";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { type MonitoredCommand, RedisMonitor } from "../../../test/support/redis-monitor.ts";
import { SCRIPT_NAMES, SCRIPTS, type ScriptName } from "../src/redis/scripts.ts";
import { runEveryScript } from "./every-script.ts";
import { Bench } from "./kit.ts";

const PARTITIONS = 4;
/** These take no key, or name it elsewhere than first. */
const KEYLESS = new Set(["time", "scan"]);

interface Call {
  readonly script: ScriptName;
  /** Keys and channels, whether passed in or made in the script. */
  readonly names: Set<string>;
}

const bench = new Bench();
const calls: Call[] = [];

beforeAll(async () => {
  await bench.open();
  const nameOf = new Map(SCRIPT_NAMES.map((name) => [SCRIPTS[name].sha, name]));
  let call: Call | undefined;
  const record = ({ name, args, inScript }: MonitoredCommand) => {
    if (inScript) {
      if (!KEYLESS.has(name)) call?.names.add(args[0] as string);
      return;
    }
    const script = nameOf.get(args[0] as string);
    call = undefined;
    if (name !== "evalsha" || script === undefined) return;
    call = { script, names: new Set(args.slice(2, 2 + Number(args[1]))) };
    calls.push(call);
  };
  const monitor = await RedisMonitor.open(bench.client, record);
  await runEveryScript(bench, PARTITIONS);
  await useUpSessions();
  await monitor.caughtUp(bench.client);
  monitor.close();
});
afterAll(async () => {
  await bench.clear();
  await bench.redis.stop();
});

/** So many requests that some give way to others, which names keys of other principals. */
async function useUpSessions(): Promise<void> {
  const pod = await bench.pod({ partitions: PARTITIONS });
  for (let n = 0; n <= SESSION_LIMITS.maxPendingPerRequesterAtTarget; n += 1) {
    for (const target of ["ada", "berta", "carl", "dora"]) await pod.request("agent://alice", `agent://${target}`);
  }
}

test("Every script is called here", () => {
  expect(new Set(calls.map(({ script }) => script))).toEqual(new Set(SCRIPT_NAMES));
});

test("Every call of a script has its keys in one slot of a Redis Cluster, those included that the script makes", () => {
  const mixed = calls.filter(({ names }) => new Set([...names].map(slotOf)).size !== 1);
  expect(mixed.map(({ script, names }) => [script, ...names])).toEqual([]);
});
