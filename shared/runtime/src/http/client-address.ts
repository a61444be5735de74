import { createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIPv6 } from "node:net";

/**
 * The address that a request came from, the same as Koa's `ctx.ip`. Never stored or logged.
 * @param trustedProxyHops how many X-Forwarded-For entries are trusted, from the right.
 */
export function clientAddress(req: IncomingMessage, trustedProxyHops: number): string {
  const own = req.socket.remoteAddress ?? "";
  if (trustedProxyHops === 0) return own;
  const forwarded = String(req.headers["x-forwarded-for"] ?? "").split(",");
  return forwarded.slice(-trustedProxyHops)[0]?.trim() || own;
}

/**
 * The network that limits count an address by: an IPv4 address itself, also in IPv6 form; of IPv6 the /64, because a
 * client with one address of a /64 has them all. Any other text is returned unchanged. Source: RFC 4291, sections 2.5.1
 * and 2.5.5.2.
 */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const groups = groupsOf(address);
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  if (isMapped)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 0xff])
      .join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The eight groups of an IPv6 address, its zone left out. */
function groupsOf(address: string): number[] {
  const compressed = new URL(`http://[${address.split("%")[0]}]`).hostname.slice(1, -1);
  const [head = [], tail = []] = compressed.split("::").map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array<string>(8 - head.length - tail.length).fill("0");
  return [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16));
}

/** Client addresses as one process counts them: hashes of their network, under a key that this process alone has. */
export class AddressHash {
  readonly #salt = randomBytes(32).toString("base64url");

  of(address: string): string {
    return anonymousId(this.#salt, "address", networkOf(address));
  }
}

/**
 * A keyed hash of what identifies a client. Without the salt nobody can find the address of an id, and ids of different
 * salts cannot be joined. Source: docs/reports.md#privacy.
 * @param salt random, and never on a disk: the window's, which goes with the window, or a process's own, which goes with it.
 * @param purpose ids of different purposes cannot be joined.
 */
export function anonymousId(salt: string, purpose: "visitor" | "address", ...traits: readonly string[]): string {
  return createHmac("sha256", salt)
    .update([purpose, ...traits].join("\n"))
    .digest("base64url")
    .slice(0, 22);
}
