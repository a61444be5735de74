import { setTimeout as delay } from "node:timers/promises";
import { Failure } from "./failure.ts";
import type { RelayHttp } from "./relay-http.ts";

const POLL_MS = 1000;

/** The most seconds of `--wait-online`. */
export const MAX_WAIT_S = 3600;

/** Resolves when the agent is online. @throws {Failure} `timeout` when it is not within so many seconds. */
export async function untilOnline(agent: string, seconds: number, http: RelayHttp, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  const isOnline = async () => (await http.patiently(() => http.presence(agent), deadline))?.status === "online";
  while (!(await isOnline())) {
    if (Date.now() >= deadline)
      throw new Failure("timeout", "The target did not come online in time.", "Nothing was sent.");
    await delay(POLL_MS, undefined, { signal }).catch(() => {});
  }
}
