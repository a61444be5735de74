import { TestRelay, use } from "./relay-under-test.ts";

export { given, giveUpCalls, use } from "./use.ts";

/**
 * A relay with the keys of these agents for the tests of one file. Redis runs before the first test; after the last one
 * everything of the relay has ended, and no socket and no process is left.
 */
export function useRelay(...names: readonly string[]): TestRelay {
  return use(new TestRelay(...names));
}
