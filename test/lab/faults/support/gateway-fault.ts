import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { HttpClient } from "../../../support/http.ts";
import type { ReturningAgent } from "../../../support/returning-agent.ts";
import { until } from "../../../support/until.ts";
import type { Fault } from "./fault.ts";
import type { Fleet, FleetPod } from "./fleet.ts";
import { nameOf } from "./pod-faults.ts";

const REQUESTS = 36;
const AT_ONCE = 6;
const TRY_AGAIN_MS = 50;

/** Callers send over two gateways, of which one is killed; each says the same again, under its Idempotency-Key, until it is accepted. */
export const GATEWAY_FAULT: Fault = {
  name: "gateway SIGKILL",
  times: 3,
  inject: async (fleet) => {
    const gateways = await Promise.all([fleet.addPod("gateway"), fleet.addPod("gateway")]);
    const [doomed, survivor] = gateways;
    const acceptedAt: number[] = [];
    const calls = Array.from({ length: AT_ONCE }, async (_, caller) => {
      for (let n = caller; n < REQUESTS; n += AT_ONCE) {
        await send(fleet, n, () => gateways.filter(({ isDismissed }) => !isDismissed));
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

/** Resolves when it is accepted. */
async function send(fleet: Fleet, n: number, gateways: () => FleetPod[]): Promise<void> {
  const { agents, ledger, relay } = fleet;
  const [from, to] = [agents[n % agents.length], agents[(n + 1) % agents.length]] as [ReturningAgent, ReturningAgent];
  const message = randomUUID();
  const http = new HttpClient({
    "x-api-key": relay.keys.apiKeys.get(nameOf(from)) as string,
    "idempotency-key": message,
  });
  for (let attempt = 0; ; attempt += 1) {
    const connection = `${message} ${attempt}`;
    const open = gateways();
    ledger.sent({ id: message, type: "message.send", from: from.id, to: to.id }, connection);
    const url = `${open[(n + attempt) % open.length]?.url}/v1/messages/send`;
    const answer = await http.post(url, { from: from.id, to: to.id, message }).catch(() => undefined);
    const at = performance.now();
    if (answer?.status === 202) {
      // What a repeat gets is the first answer again, and so its promise.
      const deliverable = answer.body.target_delivery.can_deliver_realtime;
      ledger.answered(message, connection, { at, accepted: true, duplicate: false, deliverable });
      return;
    }
    if (answer !== undefined) {
      if (answer.status !== 503) throw new Error(`A request was refused with ${answer.body.code}.`);
      ledger.answered(message, connection, { at, accepted: false, code: answer.body.code });
    }
    await delay(TRY_AGAIN_MS);
  }
}
