import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { type HeldRoute, RouteAsserter } from "../src/route-asserter.ts";
import type { Pod } from "./kit.ts";

export const BOB = "agent://bob";
export const TEAM = { principal: "key:team", hasNamespace: true } as const;
/** Of the key of the team. */
export const AGENTS_PER_KEY = 2;

/** What a pod holds of BOB on its connection c1, heard just now. */
export function held(changes: Partial<HeldRoute> = {}): HeldRoute {
  const route = { agent: BOB, connection: "c1", epoch: 7, heardAt: performance.now(), isCongested: false };
  return { ...route, principal: "key:key-1", credentials: undefined, ...changes };
}

/** A pod asserts; of each route the epoch of the newer owner, or null. */
export async function assertAs(
  name: string,
  { link, window }: Pod,
  routes: readonly HeldRoute[],
): Promise<(number | null)[]> {
  const { offlineAfterMs } = PRESENCE_LIMITS;
  const options = { link, window, pod: name, offlineAfterMs, agentsPerKey: AGENTS_PER_KEY };
  return await new RouteAsserter(options).assert(0, routes);
}
