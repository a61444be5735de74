const { NODE_COMPILE_CACHE } = process.env;

/** For processes whose environment is not the tests' own: where Node keeps what it compiled, as `jest.config.mjs` says. */
export const COMPILE_CACHE: Readonly<Record<string, string>> =
  NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
