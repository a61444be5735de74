import { PodChannel } from "relay-window/channel/pod-channel.ts";
import { takeOrders } from "../../ordered-process.ts";
import { openPod, type Place, type PodAcceptance, verifiedHeartbeat } from "./pod-acceptance.ts";

/** A pod that has all targets and counts what comes in for them: a process of its own. */

export type ReceivingOrder =
  | ({ readonly order: "open"; readonly targets: readonly string[] } & Place)
  | { readonly order: "beat" }
  | { readonly order: "count" };

let pod: PodAcceptance;
let targets: readonly string[] = [];
let delivered = 0;

takeOrders(async (order: ReceivingOrder): Promise<unknown> => {
  switch (order.order) {
    case "open":
      return await open(order);
    case "beat":
      return await beat();
    case "count":
      return delivered;
  }
});

async function open(order: Place & { readonly targets: readonly string[] }): Promise<void> {
  targets = order.targets;
  const name = `pod_bench-${process.pid}`;
  pod = await openPod(order, name);
  const channel = new PodChannel({ calls: pod.calls, pod: name, partitions: order.partitions });
  channel.listen({
    deliver: () => {
      delivered += 1;
    },
    superseded: () => {},
    probe: () => {},
    disconnect: () => {},
    traced: () => {},
  });
  await channel.start();
}

/** From the first heartbeat on the pod has an agent that nobody else has. @throws Error unless it has them all. */
async function beat(): Promise<void> {
  const outcomes = targets.map(async (target) => {
    const { promise, resolve } = Promise.withResolvers<{ readonly outcome: string }>();
    pod.acceptor.accept(verifiedHeartbeat(target, resolve));
    const { outcome } = await promise;
    if (outcome !== "accepted") throw new Error(`The heartbeat of ${target} was answered with: ${outcome}`);
  });
  await Promise.all(outcomes);
}
