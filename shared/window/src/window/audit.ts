import type { AuditLog } from "relay-runtime/audit-log.ts";
import type { KeyStore } from "relay-runtime/key-store.ts";
import type { ProcessWindow } from "./process-window.ts";

/**
 * Has each window that a service enters, and each change of the keys file that it takes, in its audit log: none of a file
 * that was written again as it was.
 */
export function auditWindowsAndKeys(audit: AuditLog, window: ProcessWindow, keys: KeyStore): void {
  if (!audit.isKept) return;
  window.onChange(() => {
    const { id, deployId } = window.current;
    audit.write({ event: "window_entered", window: id, deploy: deployId });
  });
  keys.onChange((ring, before) => {
    const changes = ring.changesSince(before);
    if (Object.values(changes).every(({ length }) => length === 0)) return;
    audit.write({ event: "keys_changed", ...changes });
  });
}
