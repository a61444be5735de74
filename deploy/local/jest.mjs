/**
 * What comes behind `node` to run Jest. V8's compilation cache would keep every module of every test file. The bounds on
 * the heap's growth, `test/support/environment.mjs` with the collector, and glibc's settings in `jest.config.mjs` keep a
 * worker below 700 MB.
 */
export const JEST = [
  "--expose-gc",
  "--no-compilation-cache",
  "--heap-growing-percent=30",
  "--max-semi-space-size=8",
  "--experimental-vm-modules",
  "--disable-warning=ExperimentalWarning",
  "node_modules/jest/bin/jest.js",
];
