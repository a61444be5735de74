import type { Pids } from "../../accounting.ts";
import { AcceptanceLoad } from "../load/acceptance-load.ts";
import type { Bus } from "../systems/agent-relay.ts";
import { evenTargets } from "./cluster-settings.ts";

/** Of pods that load Redis alone: as many lanes as they have, so small are the calls at a fixed rate. */
export const PODS = 4;

/** A setting that is up, and the pods that load it. */
export interface StagedAcceptance extends AsyncDisposable {
  readonly load: AcceptanceLoad;
  /** Of Redis and of the load. */
  readonly pids: Pids;
}

export async function stageAcceptance({ relay, partitions, redisPids }: Bus): Promise<StagedAcceptance> {
  await using stack = new AsyncDisposableStack();
  stack.defer(() => relay.stop());
  await relay.start();
  const url = relay.environmentOf("ws-connector").REDIS_URL as string;
  const load = stack.use(await AcceptanceLoad.start({ url, partitions }, PODS, evenTargets()));
  const pids = { ...(await redisPids()), ...load.pids };
  const started = stack.move();
  return { load, pids, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
