/** Resolves after that time, or when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const timer = setTimeout(end, signal.aborted ? 0 : Math.max(0, ms));
  signal.addEventListener("abort", end);
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", end);
}
