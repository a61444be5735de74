import { afterAll, afterEach, beforeAll } from "@jest/globals";
import { watchLeaks } from "../../test/support/until.ts";
import { waitForAnswers } from "../../test/support/use.ts";

/** What the tests of one file share. */
interface Shared {
  start(): Promise<void>;
  /** Ends what one test began. */
  clear(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it before the tests of the file, clears it after each, stops it after the last, which must leave nothing behind. */
export function shared<T extends Shared>(stage: T): T {
  afterEach(() => stage.clear());
  return sharedByAll(stage);
}

/** The same, but what one test began stays for the next. */
export function sharedByAll<T extends Shared>(stage: T): T {
  const noLeaks = watchLeaks();
  waitForAnswers();
  beforeAll(() => stage.start());
  afterAll(async () => {
    await stage.stop();
    await noLeaks();
  });
  return stage;
}
