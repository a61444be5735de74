import { startRelay as startComposition } from "../../deploy/local/relay.ts";
import type { RelayOptions, TestRelay } from "./contract.ts";
import { provideRedis } from "./redis.ts";
import { TestKeys } from "./test-keys.ts";

/**
 * Starts a relay in this process, as `npm start` composes it, on a free port of 127.0.0.1 and with keys of its own; it
 * serves when the promise resolves.
 * @throws {Error} that says what to do, where there is no Redis to be had or a setting is invalid.
 */
export async function startRelay({ environment = {}, cluster = false }: RelayOptions = {}): Promise<TestRelay> {
  // Ends what it holds in reverse, each whatever befell the one before.
  await using starting = new AsyncDisposableStack();
  const keys = await TestKeys.make();
  starting.defer(() => keys.remove());
  const redis = await provideRedis(cluster ? undefined : (environment.REDIS_URL ?? process.env.REDIS_URL));
  starting.defer(() => redis.stop());
  const settings = { ...environment, ...redis.environment, RELAY_KEYS_FILE: keys.file };
  const relay = await startComposition({ environment: settings, cluster });
  starting.defer(() => relay.stop());
  const started = starting.move();
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= started.disposeAsync());
  const { url, websocketUrl } = relay;
  const agent = (name: string) => keys.agent(name, url);
  return { url, websocketUrl, apiKey: keys.apiKey, agent, stop, [Symbol.asyncDispose]: stop };
}
