/** Says where a client comes from, as the edge does. */
export const FORWARDED = "X-Forwarded-For";
/** Where bystanders come from. */
export const BYSTANDERS_ADDRESS = "198.51.100.10";

/** The n-th address of an attacker's network, each of a /64 of its own. Source: RFC 3849. */
export function addressOf(network: number, n: number): string {
  return `2001:db8:${network.toString(16)}:${(n % 65_536).toString(16)}::1`;
}
