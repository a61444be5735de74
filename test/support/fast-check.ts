import fc from "fast-check";

/**
 * The seed of all random cases of tests. It is fixed, so that no run fails by chance. `RELAY_TEST_SEED` gives another one, and a
 * failure prints it.
 */
fc.configureGlobal({ seed: Number(process.env.RELAY_TEST_SEED ?? 1) });

export { fc };
