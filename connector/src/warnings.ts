import type { Emitter } from "./emitter.ts";
import { CONNECTOR_ERRORS } from "./errors.ts";
import { outdatedWarning } from "./version.ts";

/** Tells the application what works, and should be changed nevertheless. */
export class Warnings {
  readonly #emitter: Emitter;
  /** The version that was warned of. */
  #outdatedBy: string | undefined;

  constructor(emitter: Emitter) {
    this.#emitter = emitter;
  }

  /** @param offered the version that the relay hands out. */
  compareVersion(offered: string | undefined): void {
    const warning = outdatedWarning(offered);
    if (warning === undefined || offered === this.#outdatedBy) return;
    this.#outdatedBy = offered;
    this.#emitter.emit("warning", warning);
  }

  clockUntrusted(): void {
    const { message, hint } = CONNECTOR_ERRORS.clock_untrusted;
    this.#emitter.emit("warning", { code: "clock_untrusted", message, hint });
  }
}
