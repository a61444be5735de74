import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { GuardedRelay } from "../../support/guarded-redis.ts";

/** The commit of the version before: the last release, of which services may run beside those of this tree on one Redis. */
export const PREVIOUS_COMMIT = readFileSync(new URL("previous", import.meta.url), "utf8").trim();

/** Where `main.ts` has checked it out. @throws Error when it was not started by that. */
export function previousTree(): string {
  const { RELAY_PREVIOUS_TREE } = process.env;
  if (RELAY_PREVIOUS_TREE === undefined) throw new Error("Start it as: npm run test:upgrade");
  return RELAY_PREVIOUS_TREE;
}

/** A relay whose services are those of the version before or of this tree: of that one which is due when they start. */
export class RollingRelay extends GuardedRelay {
  version: "previous" | "current" = "previous";

  protected override programOf(service: ServiceName): string {
    const program = super.programOf(service);
    return this.version === "current" ? program : join(previousTree(), program);
  }
}
