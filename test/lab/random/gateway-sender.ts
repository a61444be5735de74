import { setTimeout as delay } from "node:timers/promises";
import type { Answer } from "../../support/ledger.ts";
import type { RoamingFleet } from "./roaming-fleet.ts";

const TRY_AGAIN_MS = 300;
const TRIES = 60;
/** What the ledger calls an envelope that the gateway makes, and names itself: the text that is in it. */
const NAME = "by gateway ";

export function isByGateway(id: string): boolean {
  return id.startsWith(NAME);
}

/** Sends through the gateway under idempotency keys, again and again until it is accepted. */
export class GatewaySender {
  readonly #fleet: RoamingFleet;
  readonly #url: string;
  #serial = 0;

  constructor(fleet: RoamingFleet, url: string) {
    this.#fleet = fleet;
    this.#url = url;
  }

  /** @param twice sends it once more after it was accepted, which must not deliver it again. */
  async send(agent: number, to: string, twice: boolean): Promise<void> {
    this.#serial += 1;
    const message = `${NAME}${this.#serial}`;
    const from = this.#fleet.agents[agent]?.id as string;
    const attempt = () => this.#attempt({ from, to, message }, this.#fleet.apiKeyOf(agent));
    for (let n = 0; n < TRIES && !(await attempt()); n += 1) await delay(TRY_AGAIN_MS);
    if (twice) await attempt();
  }

  /** True when it was accepted. Each is a connection of its own to the ledger: no order is promised here. */
  async #attempt(body: { from: string; to: string; message: string }, apiKey: string): Promise<boolean> {
    const { ledger } = this.#fleet;
    const id = body.message;
    ledger.sent({ id, type: "message.send", ...body }, id);
    const response = await fetch(`${this.#url}/v1/messages/send`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": apiKey, "idempotency-key": id.replaceAll(" ", "-") },
      body: JSON.stringify(body),
    });
    // biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type yet.
    const answer = (await response.json()) as any;
    ledger.answered(id, id, answerOf(response, answer));
    return response.status === 202;
  }
}

// biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type yet.
function answerOf(response: Response, body: any): Answer {
  const at = performance.now();
  if (response.status !== 202) return { at, accepted: false, code: body.code };
  return {
    at,
    accepted: true,
    duplicate: response.headers.get("idempotent-replayed") === "true",
    deliverable: body.target_delivery.can_deliver_realtime,
  };
}
