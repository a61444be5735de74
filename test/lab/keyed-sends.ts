import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { HttpClient } from "../support/http.ts";
import type { ReturningAgent } from "../support/returning-agent.ts";
import type { Fleet, FleetPod } from "./fleet.ts";
import { nameOf } from "./faults/services.ts";

/** An API key has few requests a minute. */
const TRY_AGAIN_MS = 400;

/** Who sends to whom under an Idempotency-Key of its own. */
export interface Parties {
  readonly from: ReturningAgent;
  readonly to: ReturningAgent;
  /** Which gateway is asked first. */
  readonly first: number;
}

export function parties({ agents }: Fleet, n: number): Parties {
  const [from, to] = [agents[n % agents.length], agents[(n + 1) % agents.length]];
  return { from: from as ReturningAgent, to: to as ReturningAgent, first: n };
}

/**
 * Sends a message, and the same again, at the next gateway each time, until it is accepted.
 * @param andAgain once more after that, at the next gateway, which must not deliver it again.
 */
export async function sendUntilAccepted(
  { ledger, relay }: Fleet,
  { from, to, first }: Parties,
  gateways: () => FleetPod[],
  { andAgain }: { readonly andAgain: boolean } = { andAgain: false },
): Promise<void> {
  const message = randomUUID();
  const http = new HttpClient({
    "x-api-key": relay.keys.apiKeys.get(nameOf(from)) as string,
    "idempotency-key": message,
  });
  let timesAccepted = 0;
  for (let attempt = 0; timesAccepted < (andAgain ? 2 : 1); attempt += 1) {
    const connection = `${message} ${attempt}`;
    const open = gateways();
    ledger.sent({ id: message, type: "message.send", from: from.id, to: to.id }, connection);
    const url = `${open[(first + attempt) % open.length]?.url}/v1/messages/send`;
    const answer = await http.post(url, { from: from.id, to: to.id, message }).catch(() => undefined);
    const at = performance.now();
    if (answer?.status === 202) {
      // What a repeat gets is the first answer again, and so its promise where the first was lost.
      const duplicate = timesAccepted > 0 && answer.headers.get("idempotent-replayed") === "true";
      const deliverable = answer.body.target_delivery.can_deliver_realtime;
      ledger.answered(message, connection, { at, accepted: true, duplicate, deliverable });
      timesAccepted += 1;
    } else if (answer !== undefined) {
      if (answer.status !== 503) throw new Error(`A request was refused with ${answer.body.code}.`);
      ledger.answered(message, connection, { at, accepted: false, code: answer.body.code });
    }
    if (answer?.status !== 202 || andAgain) await delay(TRY_AGAIN_MS);
  }
}
