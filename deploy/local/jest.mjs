/**
 * What comes behind `node` to run Jest. V8's compilation cache would keep every module of every test file. Without a
 * bound on its growth, V8 lets the heap of a worker double before it frees what ended test files left.
 */
export const JEST = [
  "--no-compilation-cache",
  "--heap-growing-percent=30",
  "--experimental-vm-modules",
  "--disable-warning=ExperimentalWarning",
  "node_modules/jest/bin/jest.js",
];
