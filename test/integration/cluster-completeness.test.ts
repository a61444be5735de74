import { expect, test } from "@jest/globals";
import { completenessOf } from "ops-reporting/reports/figures.ts";
import { WindowReader } from "ops-reporting/window-reader.ts";
import type { Completeness } from "relay-protocol/contract/reports/common.ts";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { PresenceStore } from "relay-window/presence/presence.ts";
import type { ClusterLinks } from "relay-window/redis/connect.ts";
import { CONTROL_SLOT, everyPartition, slotOfPartition } from "relay-window/redis/partitions.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { resetWindow } from "relay-window/window/reset.ts";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { clusterBench } from "../../shared/window/test/cluster-kit.ts";
import { TestCluster } from "../support/redis-cluster.ts";
import { until } from "../support/until.ts";

const PARTITIONS = 12;
const bench = clusterBench(new TestCluster());
const { cluster } = bench;
/** Who took the place of the primary that died last: it has no replica. */
let replacement: ClusterNode | undefined;

/** What reports say of themselves while nobody records promotions. */
class Reports {
  readonly link: ClusterLinks;
  readonly window: ProcessWindow;
  readonly #reader: WindowReader;

  constructor(link: ClusterLinks) {
    this.link = link;
    this.window = new ProcessWindow({ link, partitions: PARTITIONS, deployId: "deploy-1", logger: bench.logger });
    const { offlineAfterMs } = PRESENCE_LIMITS;
    this.#reader = new WindowReader({
      link,
      window: this.window,
      presenceStore: new PresenceStore({ link, window: this.window, offlineAfterMs }),
      offlineAfterMs,
      proofFreshnessMs: SESSION_LIMITS.proofFreshnessMs,
    });
  }

  async completeness(): Promise<Completeness> {
    return completenessOf(await this.#reader.read());
  }
}

/** Reports of a whole cluster. */
async function started(): Promise<Reports> {
  const reports = new Reports(bench.links());
  await reports.link.start();
  await until("reports are complete", async () => (await reports.completeness().catch(() => null))?.complete === true);
  return reports;
}

/** A primary that has a replica dies, and not the one that has the control slot. Returns its partitions. */
async function loseOne(): Promise<number[]> {
  const control = await cluster.primaryOf(CONTROL_SLOT);
  const owners = await Promise.all(everyPartition(PARTITIONS).map((p) => cluster.primaryOf(slotOfPartition(p))));
  const lost = owners.find((owner) => owner !== control && owner !== replacement) as typeof control;
  replacement = await cluster.replicaOf(lost);
  await cluster.kill(lost);
  return everyPartition(PARTITIONS).filter((p) => owners[p] === lost);
}

test("Once a part is out of reach no report is complete, nor one made of figures from before", async () => {
  const reports = await started();
  await loseOne();
  await until("a link is down", async () => {
    await reports.completeness();
    return reports.link.links.some(({ up }) => !up);
  });
  const report = await reports.completeness();
  await cluster.takeOver(replacement as ClusterNode);
  expect(report).toMatchObject({ complete: false });
});

test("No report is complete after a promotion, though nobody recorded it, until there is a window that began empty", async () => {
  const reports = await started();
  const { link, window } = reports;
  const places = await loseOne();
  await until("a report is not complete", async () => !(await reports.completeness()).complete);
  await cluster.takeOver(replacement as ClusterNode);
  await until("figures are of all partitions again, and no report was complete before", async () => {
    const { complete, partitions } = await reports.completeness();
    expect(complete).toBe(false);
    return partitions.missing.length === 0;
  });
  const { may_lack_since, partitions } = await reports.completeness();
  expect(partitions).toMatchObject({ may_lack: places, control_may_lack: false });
  expect(may_lack_since).toBeLessThan(Date.now());

  await resetWindow(link, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
  await window.adoptOpenWindow();
  expect(await reports.completeness()).toMatchObject({ complete: true });
});
