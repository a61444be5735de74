import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "@jest/globals";
import { Ledger, violations } from "../support/ledger.ts";
import { cut, killConnector } from "./faults.ts";
import type { Fleet, FleetPod } from "./fleet.ts";

const LONG_MS = 200;
const BOB = "agent://bob";

/** A fleet of one agent on one connector, which notes what befalls that; Redis comes to its end when it is told. */
function fleetOf() {
  const ledger = new Ledger();
  const befell: string[] = [];
  const noticed = Promise.withResolvers<void>();
  const agents = [{ id: BOB }];
  const pod = {
    proxies: [{ cut: () => befell.push("cut"), heal: () => befell.push("healed"), links: () => [] }],
    end: async () => befell.push("killed"),
  } as unknown as FleetPod;
  const fleet = { ledger, agentsOf: () => agents, replace: async () => {}, stage: { caughtUp: () => noticed.promise } };
  return { fleet: fleet as unknown as Fleet, pod, agents, ledger, befell, notice: noticed.resolve };
}

/** Promised to Bob; it has not come. */
function promise(ledger: Ledger, id: string): void {
  ledger.sent({ id, type: "message.send", from: "agent://alice", to: BOB }, "of alice");
  ledger.answered(id, "of alice", { at: performance.now(), accepted: true, duplicate: false, deliverable: true });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe.each([
  ["killed", ({ fleet, pod }: ReturnType<typeof fleetOf>) => killConnector(fleet, pod)],
  ["cut", ({ fleet, pod, agents }: ReturnType<typeof fleetOf>) => cut(fleet, pod.proxies, agents, turn)],
] as const)("A connector that is %s", (word, inject) => {
  test("has delivered what was promised before, however long that takes", async () => {
    const made = fleetOf();
    const { ledger, befell, notice } = made;
    promise(ledger, "before");
    const injected = inject(made);
    for (let n = 0; n < 5; n += 1) await turn();
    expect(befell).toEqual([]);
    ledger.received({ frame: "deliver", envelope: { id: "before", to: BOB } }, "of bob", "pod");
    notice();
    await injected;
    expect(befell).toContain(word);
  });

  test("owes nothing that is promised until Redis has come to the end of its connection, and all from then on", async () => {
    const made = fleetOf();
    const { ledger, notice } = made;
    const injected = inject(made);
    // Longer than any time after which Redis might be taken to know.
    await delay(LONG_MS);
    promise(ledger, "meanwhile");
    notice();
    await injected;
    promise(ledger, "afterwards");
    expect(violations(ledger.content)).toEqual([{ kind: "promised and lost", id: "afterwards" }]);
  });
});
