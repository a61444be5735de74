import type { Mutation } from "../mutation.ts";

const FOLDER = "connector-python/src/agent_relay_connector";
const UNIT = ["test/python/package.test.ts"];

/** When the connector for Python connects, how often, and whose connection it ends by that. */
export const CONNECTOR_PYTHON_CONNECTION_MUTATIONS: readonly Mutation[] = [
  {
    name: "Python waits for no callback that hangs",
    file: `${FOLDER}/credentials/answer_of.py`,
    find: "timeout=RENEWAL_ANSWER_WITHIN_S",
    replace: "timeout=3600",
    tests: UNIT,
  },
  {
    name: "Python does not end another connection of its agent by a start",
    file: `${FOLDER}/first_start.py`,
    find: "if elsewhere is not None:",
    replace: "if False:",
    tests: UNIT,
  },
  {
    name: "a start in Python with another's key is told so",
    file: `${FOLDER}/first_start.py`,
    find: "raise refused or RelayError",
    replace: "raise RelayError",
    tests: UNIT,
  },
  {
    name: "Python takes nothing but a word on its key from the self-test",
    file: `${FOLDER}/self_test.py`,
    find: "return said if said.code in _OF_KEY else None",
    replace: "return said",
    tests: UNIT,
  },
  {
    name: "Python takes what the relay cannot tell for the moment for no connection elsewhere",
    file: `${FOLDER}/first_start.py`,
    find: "                continue\n",
    replace:
      '                times_online += 1\n                if times_online == OWN_LOOKS:\n                    return Presence(self._agent, "online", True, {})\n                continue\n',
    tests: UNIT,
  },
  {
    name: "Python ends nobody's connection while the relay cannot tell",
    file: `${FOLDER}/first_start.py`,
    find: 'if error.retry != "later":',
    replace: 'if error.code == "unavailable" or error.retry != "later":',
    tests: UNIT,
  },
  {
    name: "Python ends nobody's connection because the relay asks it to wait for long",
    file: `${FOLDER}/first_start.py`,
    find: 'if error.retry != "later":',
    replace: 'if error.retry != "later" or (error.retry_after or 0) > 2:',
    tests: UNIT,
  },
  {
    name: "Python ends nobody's connection while a proxy answers for the relay",
    file: `${FOLDER}/check_online.py`,
    find: '"later" if may_pass(answer.status) else "fix"',
    replace: '"fix"',
    tests: UNIT,
  },
  {
    name: "Python ends a start that cannot heal",
    file: `${FOLDER}/first_start.py`,
    find: 'if not self._is_over and error.retry == "fix":',
    replace: "if False:",
    tests: UNIT,
  },
  {
    name: "Python presents an unknown key for a bounded time",
    file: `${FOLDER}/first_start.py`,
    find: "if time.monotonic() - self._unknown_since >= UNKNOWN_KEY_PRESENTED_S:",
    replace: "if False:",
    tests: UNIT,
  },
  {
    name: "Python reads few retired connections",
    file: `${FOLDER}/reconnector.py`,
    find: "if len(self._retired) == MAX_RETIRED:",
    replace: "if False:",
    tests: UNIT,
  },
  {
    name: "Python connects no faster to a relay that drains than to one that is away",
    file: `${FOLDER}/reconnector.py`,
    find: ", backoff_s(self._attempt)))",
    replace: ", 0))",
    tests: UNIT,
  },
  {
    name: "Python stays offline for no relay that drained",
    file: `${FOLDER}/reconnector.py`,
    find: "self._forget_wait_over(wait_s)\n",
    replace: "\n",
    tests: UNIT,
  },
  {
    name: "Python waits an hour at most when a relay asks it to",
    file: `${FOLDER}/frames.py`,
    find: "min(asked_ms / 1000, MAX_ASKED_WAIT_S)",
    replace: "asked_ms / 1000",
    tests: UNIT,
  },
  {
    name: "Python gives up a connection on which it cannot register in time, before the relay ends it for good",
    file: `${FOLDER}/connection.py`,
    find: "self._wait(REGISTER_WITHIN_S, self._end)",
    replace: "self._wait(3600, self._end)",
    tests: UNIT,
  },
  {
    name: "Python tells its end after what came in before it has been judged and handed over",
    file: `${FOLDER}/lifecycle.py`,
    find: "self._background.spawn(self._after_what_came_in(lambda: self._stop(error)))",
    replace: "self._stop(error)",
    tests: [...UNIT, "test/python/end.test.ts"],
  },
  {
    name: "Python tells of a takeover after what came in before it",
    file: `${FOLDER}/lifecycle.py`,
    find: ' and frame.kind == "superseded"',
    replace: " and False",
    tests: [...UNIT, "test/python/end.test.ts"],
  },
  {
    name: "Python makes no further connection while what came in before an end for good is judged",
    file: `${FOLDER}/lifecycle.py`,
    find: "self._background.spawn(self._reconnector.stop())",
    replace: "pass",
    tests: UNIT,
  },
  {
    name: "Python sends nothing while what came in before an end for good is judged",
    file: `${FOLDER}/lifecycle.py`,
    find: "self.parts.send_queue.pause()\n        self._background",
    replace: "self._background",
    tests: UNIT,
  },
];
