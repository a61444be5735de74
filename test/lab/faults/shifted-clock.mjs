/** Preloaded (`--import`) into a process whose clock is to be off by CLOCK_SHIFT_MS. */
const shiftMs = Number(process.env.CLOCK_SHIFT_MS);
const trueNow = Date.now;
Date.now = () => trueNow() + shiftMs;
