import { join } from "node:path";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { TestRelay } from "../../../support/relay.ts";

/** A relay whose services are those of another tree; Redis, keys and settings are as this one's have them. */
export class EarlierRelay extends TestRelay {
  readonly #folder: string;

  constructor(folder: string) {
    super();
    this.#folder = folder;
  }

  protected override programOf(service: ServiceName): string {
    return join(this.#folder, super.programOf(service));
  }
}
