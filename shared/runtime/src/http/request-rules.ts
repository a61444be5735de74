import type { IncomingMessage } from "node:http";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { originForm } from "./request-target.ts";

/** Source: RFC 3986, section 3.2.2. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::[0-9]*)?$/;

/** Why a request is refused whatever it asks for, or null: then its target is in origin-form. */
export function refusalOfRequest(req: IncomingMessage): ServiceError | null {
  if (!hasOneHost(req)) return new ServiceError("invalid_request", { detail: "One valid Host field is required." });
  const target = originForm(req.url ?? "");
  if (target === null) return new ServiceError("not_found");
  req.url = target;
  return null;
}

/**
 * With two of them, a proxy may have gone by the other one. An upgrade needs one whatever its version.
 * Source: RFC 9112, section 3.2; RFC 6455, section 4.2.1.
 */
function hasOneHost({ rawHeaders, headers, httpVersion }: IncomingMessage): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") count += 1;
  }
  if (count === 0) return httpVersion === "1.0" && headers.upgrade === undefined;
  return count === 1 && HOST.test(headers.host ?? "");
}
