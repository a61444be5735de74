import type { Logger } from "relay-runtime/logging.ts";
import type { GatewaySettings } from "../settings.ts";

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Without RELAY_CONTACT security.txt names nothing but feedback, which nobody reads: a relay for others needs one. */
export function warnWithoutContact(
  { baseUrl, contact }: Pick<GatewaySettings, "baseUrl" | "contact">,
  logger: Logger,
): void {
  if (contact !== undefined || LOOPBACK.test(new URL(baseUrl).hostname)) return;
  logger.warn({ setting: "RELAY_CONTACT" }, "no contact is set: nobody can report a security problem to a person");
}
