/** The relay under test, and how a test file uses it: here on one Redis; other Jest configs put theirs in the place of this file. */
export { TestRelay } from "./relay.ts";
export { use } from "./use.ts";
