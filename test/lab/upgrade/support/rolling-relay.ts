import { join } from "node:path";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { GuardedRelay } from "../../../support/guarded-redis.ts";
import { previousTree } from "./previous-tree.ts";

/** A relay whose services are those of the version before or of this tree: of that one which is due when they start. */
export class RollingRelay extends GuardedRelay {
  version: "previous" | "current" = "previous";

  protected override programOf(service: ServiceName): string {
    const program = super.programOf(service);
    return this.version === "current" ? program : join(previousTree(), program);
  }
}
