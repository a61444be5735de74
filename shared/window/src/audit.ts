import type { AuditLog } from "runtime/audit-log.ts";
import type { KeyStore } from "runtime/key-store.ts";
import type { ProcessWindow } from "./process-window.ts";

/** Has each window that a service enters, and each change of the keys file that it takes, in its audit log. */
export function auditWindowsAndKeys(audit: AuditLog, window: ProcessWindow, keys: KeyStore): void {
  if (!audit.isKept) return;
  window.onChange(() => {
    const { id, deployId } = window.current;
    audit.write({ event: "window_entered", window: id, deploy: deployId });
  });
  keys.onChange((ring, before) => audit.write({ event: "keys_changed", ...ring.changesSince(before) }));
}
