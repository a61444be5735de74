import { GUIDE_SURFACES, REPORT_SURFACES } from "relay-protocol/contract/report-surfaces.ts";
import { type Fleet, GATEWAY, REPORTING } from "../fleet.ts";
import { anyOf, Pace } from "../pace.ts";

const REPORT_PATHS = Object.values({ ...REPORT_SURFACES, ...GUIDE_SURFACES }).map(({ path }) => path);
const LOOK_UPS_PER_SECOND = 4;
const REPORTS_PER_SECOND = 2;
/** 503 is due while Redis is gone. */
const DUE: readonly number[] = [200, 503];

/** Those who only look, from the first to the last: what the gateway and ops-reporting do meanwhile. */
export class Looks {
  /** Answered with a status that is not due, or not at all. */
  failed = 0;
  readonly #pace = new Pace();

  constructor(fleet: Fleet, names: readonly string[]) {
    const look = (url: string) => void this.#look(url).catch(() => (this.failed += 1));
    const presence = () => `${fleet.url(GATEWAY)}/api/onboarding/check-online?agent_id=agent://${anyOf(names)}`;
    this.#pace.every(LOOK_UPS_PER_SECOND, () => look(presence()));
    this.#pace.every(REPORTS_PER_SECOND, () => look(`${fleet.url(REPORTING)}${anyOf(REPORT_PATHS)}`));
  }

  stop(): void {
    this.#pace.stop();
  }

  async #look(url: string): Promise<void> {
    const response = await fetch(url);
    await response.arrayBuffer();
    if (!DUE.includes(response.status)) this.failed += 1;
  }
}
