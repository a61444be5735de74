import type { Mutation } from "../mutation.ts";

/** What the connector does not believe of a relay. */
export const CONNECTOR_MUTATIONS: readonly Mutation[] = [
  {
    name: "no more in flight than heartbeats come in time behind",
    file: "connector/src/send-queue.ts",
    find: "Math.min(this.#allowed, this.#writer.maxInFlight)",
    replace: "this.#allowed",
    tests: ["connector/test/send-queue.test.ts"],
  },
  {
    name: "a command ends with the npx that ran it",
    file: "connector/src/cli/main.ts",
    find: "endWithNpx(process.env, () => stopped.abort());",
    replace: "",
    tests: ["test/packages/installing.test.ts"],
  },
  {
    name: "a key file is never overwritten",
    file: "connector/src/cli/private-file.ts",
    find: 'open(file, "wx", 0o600)',
    replace: 'open(file, "w", 0o600)',
    tests: ["connector/test/cli/setup.test.ts"],
  },
  {
    name: "a record is printed again for its agent alone",
    file: "connector/src/cli/commands/keygen.ts",
    find: "known?.agent !== agent || ",
    replace: "known === undefined || ",
    tests: ["connector/test/cli/setup.test.ts"],
  },
  {
    name: "a command waits for a limit of its address",
    file: "connector/src/cli/transports/connection.ts",
    find: "http.patiently(() => http.presence(agent))",
    replace: "http.presence(agent)",
    tests: ["connector/test/cli/send-once.test.ts"],
  },
  {
    name: "old deliveries are dropped",
    file: "connector/src/delivery-judge.ts",
    find: "if (replayGuard.isStale(envelope))",
    replace: "if (false)",
    tests: ["connector/test/verification.test.ts"],
  },
  {
    name: "the relay moves the clock that judges them by 5 minutes at most",
    file: "connector/src/clock.ts",
    find: "return Math.round(Date.now() + bounded);",
    replace: "return this.now();",
    tests: ["connector/test/verification.test.ts", "connector/test/clock.test.ts"],
  },
  {
    name: "nothing is verified by a clock that may be wrong",
    file: "connector/src/delivery-judge.ts",
    find: "canJudge ? signer : UNVERIFIED",
    replace: "signer",
    tests: ["connector/test/clock.test.ts"],
  },
  {
    name: "an id of a sender is delivered once",
    file: "connector/src/delivery-judge.ts",
    find: "if (replayGuard.isRepeat(envelope))",
    replace: "if (false)",
    tests: ["connector/test/verification.test.ts"],
  },
  {
    name: "made-up deliveries do not push out what is remembered of verified ones",
    file: "connector/src/replay-guard.ts",
    find: 'verified === "agent" ? this.#verified : this.#others',
    replace: "this.#verified",
    tests: ["connector/test/replay-guard.test.ts"],
  },
  {
    name: "repeats are remembered until they are old by any clock",
    file: "connector/src/replay-guard.ts",
    find: " + MAX_CLOCK_CORRECTION_MS);",
    replace: " - MAX_CLOCK_CORRECTION_MS);",
    tests: ["connector/test/replay-guard.test.ts"],
  },
];
