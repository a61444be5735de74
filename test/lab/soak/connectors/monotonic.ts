/** Milliseconds on the clock that all processes of this machine share and nobody sets: Python's `time.monotonic()`. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
