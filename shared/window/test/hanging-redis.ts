import { jest } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import type { ScriptName } from "../src/redis/scripts.ts";
import type { Bench, Pod } from "./kit.ts";

/**
 * What comes of what a pod does while Redis hangs: from now on, or from the first call of a script on. Redis goes on once
 * that is told, and carries out what it was sent.
 */
export async function whileRedisHangs<T>(bench: Bench, pod: Pod, act: () => Promise<T>, from?: ScriptName): Promise<T> {
  const connections = await connectionsOf(bench, pod);
  const run = pod.link.run.bind(pod.link);
  const calls = jest.spyOn(pod.link, "run").mockImplementation(async (script, keys, args) => {
    if (script === from) await bench.redis.pause();
    return await run(script, keys, args);
  });
  if (from === undefined) await bench.redis.pause();
  const outcome = await act();
  calls.mockRestore();
  await bench.redis.resume();
  const areGone = async () => (await connectionsOf(bench, pod)).every((id) => !connections.includes(id));
  await until("Redis has done with the connection that was given up", areGone);
  await until("the link is up", () => pod.link.up);
  return outcome;
}

/** Ids of the connections of a pod's link, as Redis has them. */
async function connectionsOf(bench: Bench, { link }: Pod): Promise<string[]> {
  const list = String(await bench.client.client("LIST"));
  const own = [...list.matchAll(/^id=(\d+) .*? name=(\S+) /gm)].filter(([, , name]) => name === link.name);
  return own.map(([, id]) => id as string);
}
