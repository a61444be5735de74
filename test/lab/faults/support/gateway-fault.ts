import { until } from "../../../support/until.ts";
import type { Fault } from "./fault.ts";
import { parties, sendUntilAccepted } from "../../keyed-sends.ts";
import type { SingleFleet } from "./single-stage.ts";

const REQUESTS = 36;
const AT_ONCE = 6;

/** Callers send over two gateways, of which one is killed; each says the same again, under its Idempotency-Key, until it is accepted. */
export const GATEWAY_FAULT: Fault<SingleFleet> = {
  name: "gateway SIGKILL",
  times: 3,
  inject: async (fleet) => {
    const gateways = await Promise.all([fleet.addPod("gateway"), fleet.addPod("gateway")]);
    const [doomed, survivor] = gateways;
    const acceptedAt: number[] = [];
    const calls = Array.from({ length: AT_ONCE }, async (_, caller) => {
      for (let n = caller; n < REQUESTS; n += AT_ONCE) {
        await sendUntilAccepted(fleet, parties(fleet, n), () => gateways.filter(({ isDismissed }) => !isDismissed));
        acceptedAt.push(performance.now());
      }
    });
    const served = until("callers are served", () => acceptedAt.length > AT_ONCE);
    await Promise.race([served, Promise.all(calls)]);
    const killed = doomed.end("SIGKILL");
    const killedAt = performance.now();
    await Promise.all([killed, ...calls]);
    await survivor.end("SIGTERM");
    return { agents: [], endedAt: killedAt, backAt: acceptedAt.find((at) => at > killedAt) ?? Number.NaN };
  },
};
