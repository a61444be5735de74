import { setTimeout as delay } from "node:timers/promises";
import { Failure } from "./failure.ts";
import type { RelayHttp } from "./relay-http.ts";
import type { Reporter } from "./reporter.ts";

const POLL_MS = 1000;

/** The most seconds of `--wait-online`. */
export const MAX_WAIT_S = 3600;

/** Resolves when the agent is online. @throws {Failure} `timeout` when it is not within so many seconds. */
export async function untilOnline(
  agent: string,
  seconds: number,
  http: RelayHttp,
  { signal, reporter }: { signal: AbortSignal; reporter: Reporter },
): Promise<void> {
  const text = `Waiting for ${agent} to come online, up to ${seconds} s.`;
  await reporter.whileWaiting(text, online(agent, seconds, http, signal));
}

async function online(agent: string, seconds: number, http: RelayHttp, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  const statusNow = async () => (await http.patiently(() => http.presence(agent), deadline))?.status;
  for (let status = await statusNow(); status !== "online"; status = await statusNow()) {
    if (Date.now() >= deadline) throw notOnline(status);
    await delay(POLL_MS, undefined, { signal }).catch(() => {});
  }
}

function notOnline(status: unknown): Failure {
  const seen = status === "not_seen" ? " The relay has never seen it, as far back as it knows: check its id." : "";
  return new Failure("timeout", `The target did not come online in time.${seen}`, "Nothing was sent.");
}
