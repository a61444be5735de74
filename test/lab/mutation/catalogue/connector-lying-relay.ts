import type { Mutation } from "../mutation.ts";

/** What bounds a relay that lies to the connector, or is broken. */
export const CONNECTOR_LYING_RELAY_MUTATIONS: readonly Mutation[] = [
  {
    name: "the connector takes no day of a record that the calendar does not have",
    file: "connector/src/credentials/issuer-record.ts",
    find: "Number.isFinite(midnight.getTime()) && midnight.toISOString().startsWith(day)",
    replace: 'Number.isFinite(midnight.getTime()) && day !== ""',
    tests: ["connector/test/credentials/vouching.test.ts"],
  },
  {
    name: "a wait that a relay asks for fits into a timer",
    file: "connector/src/frames.ts",
    find: "Math.min(Math.ceil(ms), MAX_ASKED_WAIT_MS)",
    replace: "ms",
    tests: ["connector/test/frames.test.ts", "connector/test/wait-online.test.ts"],
  },
  {
    name: "heartbeats no more often than four times a second, whatever a relay asks for",
    file: "connector/src/frames.ts",
    find: "Math.max(intervalMs, MIN_HEARTBEAT_INTERVAL_MS)",
    replace: "intervalMs",
    tests: ["connector/test/frames.test.ts"],
  },
  {
    name: "an answer of the relay has a bound",
    file: "connector/src/http-answer.ts",
    find: "if (bytes > maxBytes)",
    replace: "if (false)",
    tests: ["connector/test/http-answer.test.ts"],
  },
  {
    name: "a redirect is not followed",
    file: "connector/src/http-answer.ts",
    find: ' redirect: "error",',
    replace: "",
    tests: ["connector/test/http-answer.test.ts"],
  },
  {
    name: "an answer of the relay has a time",
    file: "connector/src/http-answer.ts",
    find: "AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])",
    replace: "signal",
    tests: ["connector/test/http-answer.test.ts"],
  },
  {
    name: "a relay that drains at once is asked less often",
    file: "connector/src/reconnector.ts",
    find: "Math.max(jitteredMs(frame.notice.reconnectAfterMs), backoffMs(this.#attempt))",
    replace: "jitteredMs(frame.notice.reconnectAfterMs)",
    tests: ["connector/test/reconnector.test.ts"],
  },
  {
    name: "few replaced connections stay open",
    file: "connector/src/reconnector.ts",
    find: "this.#retired.size > MAX_RETIRED",
    replace: "false",
    tests: ["connector/test/reconnector.test.ts"],
  },
  {
    name: "a relay's clock does not make a credential due",
    file: "connector/src/credentials/own-credential.ts",
    find: "this.#dueAt - this.#options.clock.boundedNow()",
    replace: "this.#dueAt - this.#options.clock.now()",
    tests: ["connector/test/credentials/own-credential.test.ts"],
  },
  {
    name: "an issuer is not asked in a loop, though each renewal succeeds",
    file: "connector/src/credentials/own-credential.ts",
    find: "this.#askAt = now + Math.min(",
    replace: "this.#askAt = 0 * Math.min(",
    tests: ["connector/test/credentials/own-credential.test.ts"],
  },
  {
    name: "what is remembered of a delivery has a bound",
    file: "connector/src/read-envelope.ts",
    find: "if (!hasForm || ",
    replace: "if (",
    tests: ["connector/test/read-envelope.test.ts"],
  },
  {
    name: "a frame that is far too large is not read",
    file: "connector/src/socket.ts",
    find: "String(data).length > MAX_RECEIVED_CHARACTERS",
    replace: "false",
    tests: ["connector/test/socket.test.ts"],
  },
];
