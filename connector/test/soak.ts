import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { freePort } from "../../test/support/free-port.ts";
import type { PodProcess } from "../../test/support/pod-process.ts";
import { until } from "../../test/support/until.ts";
import type { Connector } from "../src/index.ts";
import { Stage } from "./kit.ts";

/**
 * `npm run soak:connectors [-- --minutes 10 --agents 200]`: connectors on one connector process of the relay, which is
 * killed every 30 s. Promises: every connector is back within 10 s of each kill, no send is left hanging, memory is
 * level once each connector remembers as many deliveries as it may. Exit code 1 when one of them is broken.
 */

const KILL_EVERY_MS = 30_000;
const BACK_WITHIN_MS = 10_000;
const SEND_EVERY_MS = 250;
const SEND_TIMEOUT_MS = 20_000;
/** What the heap may grow by over the second half. */
const LEVEL = 1.05;

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, agents: { type: "string", default: "200" } },
});
const rounds = Math.max(2, Math.round((Number(values.minutes) * 60_000) / KILL_EVERY_MS));
const names = Array.from({ length: Number(values.agents) }, (_, n) => `agent-${n}${n % 2 === 0 ? "" : "-hmac"}`);

const tally = { sent: 0, accepted: 0, realtime: 0, repeated: 0, delivered: 0, rejected: new Map<string, number>() };
let unsettled = 0;

const stage = new Stage(...names);
await stage.start();
const port = await freePort();
let pod = await startPod();
const connectors = await Promise.all(names.map((name) => stage.online(name, pod.url)));
for (const connector of connectors) connector.on("delivery", () => (tally.delivered += 1));
const talking = new AbortController();
const talks = connectors.map((connector, n) => talk(connector, connectors[(n + 1) % connectors.length] as Connector));

const heaps: number[] = [];
const worst: number[] = [];
say(`${names.length} connectors, one kill every ${KILL_EVERY_MS / 1000} s, ${rounds} kills`);
say("kill  back after: median  last   heap");
for (let round = 1; round <= rounds; round += 1) {
  await delay(KILL_EVERY_MS);
  const killedAt = performance.now();
  const returns = connectors.map((connector) => backAfter(connector, killedAt));
  await pod.end("SIGKILL");
  pod = await startPod();
  const took = (await Promise.all(returns)).sort((a, b) => a - b);
  worst.push(took.at(-1) as number);
  heaps.push(heapBytes());
  const [median, last] = [took[Math.floor(took.length / 2)], took.at(-1)].map((ms) => `${Math.round(ms ?? 0)} ms`);
  say(`${String(round).padEnd(18)}${median?.padEnd(8)}${last?.padEnd(9)}${megabytes(heaps.at(-1) ?? 0)}`);
}

talking.abort();
await Promise.all(talks);
await until("every send is settled", () => unsettled === 0, SEND_TIMEOUT_MS + 5000).catch(() => {});
await stage.stop();
report();

/** One message at a time to a partner, for as long as the soak runs; each must settle. */
async function talk(connector: Connector, partner: Connector): Promise<void> {
  while (!talking.signal.aborted) {
    tally.sent += 1;
    unsettled += 1;
    void connector
      .send(partner.agent, { n: tally.sent }, { timeoutMs: SEND_TIMEOUT_MS })
      .then(
        ({ delivery, duplicate }) => {
          tally.accepted += 1;
          if (delivery.canDeliverRealtime) tally.realtime += 1;
          if (duplicate) tally.repeated += 1;
        },
        ({ code }) => tally.rejected.set(code, (tally.rejected.get(code) ?? 0) + 1),
      )
      .finally(() => (unsettled -= 1));
    await delay(SEND_EVERY_MS);
  }
}

/** Milliseconds from the kill until the connector, gone offline, is online again. */
function backAfter(connector: Connector, killedAt: number): Promise<number> {
  return new Promise((resolve) => {
    const end = connector.on("state", ({ status }) => {
      if (status !== "online") return;
      end();
      resolve(performance.now() - killedAt);
    });
  });
}

async function startPod(): Promise<PodProcess> {
  return await stage.relay.startWsConnectorProcess({ PORT: String(port), LOG_LEVEL: "info" });
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function report(): void {
  const rejected = [...tally.rejected].map(([code, n]) => `${code} ${n}`).join(", ") || "none";
  const growth = (heaps.at(-1) ?? 0) / (heaps[Math.floor(heaps.length / 2)] ?? 1);
  const promises = [
    [`every connector is back within ${BACK_WITHIN_MS / 1000} s of each kill`, Math.max(...worst) <= BACK_WITHIN_MS],
    ["no send is left hanging", unsettled === 0],
    [`over the second half the heap grows by at most ${Math.round((LEVEL - 1) * 100)} %`, growth <= LEVEL],
  ] as const;
  say(`sent ${tally.sent}, accepted ${tally.accepted} (realtime ${tally.realtime}, sent again ${tally.repeated}),`);
  say(`delivered ${tally.delivered}, rejected: ${rejected}, unsettled ${unsettled}`);
  say(`longest way back ${Math.round(Math.max(...worst))} ms, heap × ${growth.toFixed(2)}`);
  for (const [promise, kept] of promises) say(`${kept ? "kept  " : "BROKEN"} ${promise}`);
  if (promises.some(([, kept]) => !kept)) process.exitCode = 1;
}
