import { AuditLog } from "runtime/audit-log.ts";
import { createLogger } from "runtime/logging.ts";

/** Where nobody asked for an audit log. */
export const NO_AUDIT = new AuditLog({
  file: undefined,
  service: "test",
  logger: createLogger({ service: "test", level: "silent" }),
});
