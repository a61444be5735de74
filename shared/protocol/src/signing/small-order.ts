/** Points of the two curves that no key may be: whose order divides 8, in any encoding. Keys have 32 bytes. */

const FIELD_PRIME = 2n ** 255n - 19n;

/** y of such points of Ed25519, for either sign of x: under such a key one signature is valid for any message. */
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  FIELD_PRIME - 1n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
]);

/** u of such points of X25519: with one, what two sides agree on is known to all. Source: RFC 7748, section 6.1. */
const SMALL_ORDER_U: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  FIELD_PRIME - 1n,
  0x00b8495f16056286fdb1329ceb8d09da6ac49ff1fae35616aeb8413b7c7aebe0n,
  0x57119fd0dd4e22d8868e1c58c45c44045bef839c55b1d0b1248c50a3bc959c5fn,
]);

/** The bits from 248 on that all of them have one of, and whatever is at or above the prime: they tell nearly every key apart. */
const SMALL_ORDER_TOPS: ReadonlySet<number> = new Set([...SMALL_ORDER_Y, FIELD_PRIME].map((y) => Number(y >> 248n)));

/** True also for a y at or above the prime: a second encoding of a smaller y. */
export function isSmallOrderEd25519(point: Buffer): boolean {
  if (!SMALL_ORDER_TOPS.has((point.at(-1) as number) & 0x7f)) return false;
  const y = numberOf(point) & (2n ** 255n - 1n);
  return y >= FIELD_PRIME || SMALL_ORDER_Y.has(y);
}

/** True also for a u at or above the prime: a second encoding of a smaller u. */
export function isSmallOrderX25519(point: Buffer): boolean {
  const u = numberOf(point);
  return u >= FIELD_PRIME || SMALL_ORDER_U.has(u);
}

/** Of little-endian bytes. */
function numberOf(bytes: Buffer): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);
}
