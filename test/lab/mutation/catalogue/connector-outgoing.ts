import type { Mutation } from "../mutation.ts";

const PYTHON = "connector-python/src/agent_relay_connector";
const BEHAVIOUR = ["test/connectors/behaviour.test.ts"];
const PYTHON_UNIT = ["test/python/package.test.ts"];

/** What both connectors find wrong before anything goes out, and the clock that they date it by. */
export const CONNECTOR_OUTGOING_MUTATIONS: readonly Mutation[] = [
  {
    name: "wrong fields are named before anything goes out",
    file: "connector/src/envelope-rules.ts",
    find: "if (errors.length > 0) throw",
    replace: "if (errors.length < 0) throw",
    tests: BEHAVIOUR,
  },
  {
    name: "Python names wrong fields before anything goes out",
    file: `${PYTHON}/envelope_rules.py`,
    find: "    if errors:\n",
    replace: "    if False:\n",
    tests: BEHAVIOUR,
  },
  {
    name: "a recipient that never came is none whom nobody vouches for",
    file: "connector/src/credentials/credential-verifier.ts",
    find: 'RelayError("recipient_unknown")',
    replace: 'RelayError("recipient_unverified")',
    tests: ["connector/test/credentials/credential-verifier.test.ts", ...BEHAVIOUR],
  },
  {
    name: "Python tells a recipient that never came from one whom nobody vouches for",
    file: `${PYTHON}/sender_verifier.py`,
    find: 'RelayError("recipient_unknown")',
    replace: 'RelayError("recipient_unverified")',
    tests: BEHAVIOUR,
  },
  {
    name: "Python seals under pinned issuers only",
    file: `${PYTHON}/sender_verifier.py`,
    find: 'if verdict.verified != "agent":',
    replace: "if False:",
    tests: BEHAVIOUR,
  },
  {
    name: "a slow answer moves no clock that may be right",
    file: "connector/src/clock.ts",
    find: "isSame ? 0 :",
    replace: "isSame && elapsedMs < 0 ? 0 :",
    tests: ["connector/test/clock.test.ts"],
  },
  {
    name: "the quickest answer of a relay tells its time",
    file: "connector/src/clock.ts",
    find: "const fits = leastMs <= this.#mostMs && mostMs >= this.#leastMs;",
    replace: "const fits = leastMs > mostMs;",
    tests: ["connector/test/clock.test.ts"],
  },
  {
    name: "a clock that was set is measured anew",
    file: "connector/src/clock.ts",
    find: "const fits = leastMs <= this.#mostMs && mostMs >= this.#leastMs;",
    replace: "const fits = leastMs <= mostMs;",
    tests: ["connector/test/clock.test.ts"],
  },
  {
    name: "clocks more than 5 minutes apart are believed neither",
    file: "connector/src/clock.ts",
    find: "Math.abs(this.#offsetMs) <= MAX_CLOCK_CORRECTION_MS",
    replace: "Math.abs(this.#offsetMs) >= 0",
    tests: ["connector/test/clock.test.ts"],
  },
  {
    name: "Python moves no clock that may be right by a slow answer",
    file: `${PYTHON}/clock.py`,
    find: "0.0 if is_same else",
    replace: "0.0 if False else",
    tests: PYTHON_UNIT,
  },
  {
    name: "Python takes the relay's time from the quickest answer",
    file: `${PYTHON}/clock.py`,
    find: "if least_ms <= self._most_ms and most_ms >= self._least_ms:",
    replace: "if False:",
    tests: PYTHON_UNIT,
  },
  {
    name: "Python measures a clock that was set anew",
    file: `${PYTHON}/clock.py`,
    find: "if least_ms <= self._most_ms and most_ms >= self._least_ms:",
    replace: "if True:",
    tests: PYTHON_UNIT,
  },
  {
    name: "Python lets the relay move the clock that judges deliveries by 5 minutes at most",
    file: `${PYTHON}/clock.py`,
    find: "return round(machine_ms() + bounded)",
    replace: "return self.now()",
    tests: PYTHON_UNIT,
  },
  {
    name: "Python believes neither of two clocks more than 5 minutes apart",
    file: `${PYTHON}/clock.py`,
    find: "abs(self._offset_ms) <= MAX_CLOCK_CORRECTION_MS",
    replace: "abs(self._offset_ms) >= 0",
    tests: PYTHON_UNIT,
  },
];
