/** Near enough to the share. */
const NEAR = 0.02;
const FIRST_PER_SECOND = 6000;
/** What one process sends. */
const MOST_PER_SECOND = 40_000;
const STEP = 100;
/** No look is at a load that is much more than any before: one that is too much would be refused. */
const LONGEST_STRIDE = 1.5;
const LOOKS = 10;

/**
 * The rate whose load takes a share of a core, looked for in strides, since an envelope costs less the more there are; of those
 * that were looked at the nearest, where none is near enough.
 * @param shareAt the share that a rate takes.
 */
export async function rateFor(share: number, shareAt: (perSecond: number) => Promise<number>): Promise<number> {
  const looks = new Map<number, number>();
  let perSecond = FIRST_PER_SECOND;
  while (looks.size < LOOKS && !looks.has(perSecond)) {
    const found = await shareAt(perSecond);
    looks.set(perSecond, Math.abs(found - share));
    if (Math.abs(found - share) <= NEAR) return perSecond;
    const stride = Math.max(1 / LONGEST_STRIDE, Math.min(LONGEST_STRIDE, share / found));
    perSecond = Math.min(MOST_PER_SECOND, Math.round((perSecond * stride) / STEP) * STEP);
  }
  return [...looks].reduce((best, one) => (one[1] < best[1] ? one : best))[0];
}
