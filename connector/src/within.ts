/** Resolves when the promise does, or after that time. */
export async function within(ms: number, promise: Promise<void>): Promise<void> {
  const { promise: passed, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, Math.max(0, ms));
  await Promise.race([promise, passed]);
  clearTimeout(timer);
}
