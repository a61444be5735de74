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
    name: "registers and heartbeats are signed for their connection",
    file: "connector/src/presence.ts",
    find: "...(connectionId && { connection_id: connectionId })",
    replace: "",
    tests: BEHAVIOUR,
  },
  {
    name: "registers and heartbeats are signed for the relay that was dialled",
    file: "connector/src/presence.ts",
    find: "const destination = { relay: this.#options.relay, ",
    replace: "const destination = { ",
    tests: BEHAVIOUR,
  },
  {
    name: "Python signs registers and heartbeats for their connection",
    file: `${PYTHON}/presence.py`,
    find: "if connection_id is not None:",
    replace: "if False:",
    tests: BEHAVIOUR,
  },
  {
    name: "Python signs registers and heartbeats for the relay that was dialled",
    file: `${PYTHON}/presence.py`,
    find: 'destination = {"relay": self._options.relay}',
    replace: "destination: dict[str, str] = {}",
    tests: BEHAVIOUR,
  },
  {
    name: "Python takes what could not be signed for no id of a connection",
    file: `${PYTHON}/frames.py`,
    find: "_CONNECTION_ID.fullmatch(value)",
    replace: "True",
    tests: PYTHON_UNIT,
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
