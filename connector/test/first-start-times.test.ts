import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { RelayError } from "../src/errors.ts";
import { FirstStart } from "../src/first-start.ts";
import { type HttpAnswer, HttpClient } from "../src/http-client.ts";
import { FIRST_START, ONLINE_LOOK } from "../src/limits.ts";
import { errorOf } from "./kit.ts";
import { answerLookUps, said, setTime } from "./times.ts";

let nowMs = 0;

beforeEach(() => void jest.spyOn(performance, "now").mockImplementation(() => nowMs));
afterEach(() => void jest.restoreAllMocks());

/** @param told is given each failed attempt. @param over why no further one may follow. */
function firstStart(told: RelayError[] = [], takeOver = true, over: RelayError[] = []): FirstStart {
  const http = new HttpClient("http://127.0.0.1:9", false);
  const failed = (error: RelayError) => void told.push(error);
  const ended = (error: RelayError) => void over.push(error);
  return new FirstStart({ agent: "agent://alice", http, takeOver, timeoutMs: undefined, failed, ended });
}

test("A start that ends with its time names the relay that has not answered", () => {
  jest.useFakeTimers();
  const ended: RelayError[] = [];
  firstStart([], true, ended).limit({ timeoutMs: 1000 });
  jest.advanceTimersByTime(1000);
  jest.useRealTimers();
  expect(ended).toMatchObject([{ code: "timeout", message: expect.stringContaining("http://127.0.0.1:9 has not") }]);
});

test("An upgrade that something else answers ends the start a minute after the first such answer", () => {
  const refusal = (retry: "fix" | "later", status: number) =>
    new RelayError("unreachable", { retry, cause: { status } });
  const start = firstStart();
  expect(start.isEndedBy(refusal("later", 503))).toBe(false);
  nowMs += FIRST_START.refusedUpgradeMs;
  expect(start.isEndedBy(refusal("fix", 403))).toBe(false);
  nowMs += FIRST_START.refusedUpgradeMs - 1;
  expect(start.isEndedBy(refusal("fix", 404))).toBe(false);
  nowMs += 1;
  expect(start.isEndedBy(refusal("fix", 403))).toBe(true);
});

test("What answers look-ups in the relay's place ends the start after 10 s without an answer of the relay", async () => {
  setTime(ONLINE_LOOK.wait, "firstMs", 1);
  setTime(ONLINE_LOOK.wait, "capMs", 1);
  const page = said("<html>", 404);
  const relay = said({ code: "unavailable", retry: "later", retry_after_ms: 1 });
  const proxy = said("", 502);
  const answers: [afterMs: number, HttpAnswer][] = [
    [0, page],
    [9999, page],
    [0, relay],
    [9999, page],
    [9999, page],
    [1, proxy],
    [0, page],
  ];
  let asked = 0;
  answerLookUps(() => {
    const [afterMs, answer] = answers[asked] as (typeof answers)[number];
    asked += 1;
    nowMs += afterMs;
    return answer;
  });
  const told: RelayError[] = [];
  const error = await errorOf(firstStart(told, false).beforeRegister(async () => ""));
  expect([error, asked]).toEqual([expect.objectContaining({ code: "not_a_relay" }), answers.length]);
  const codes = ["not_a_relay", "not_a_relay", "unavailable", "not_a_relay", "not_a_relay", "unreachable"];
  expect(told.map(({ code }) => code)).toEqual(codes);
});

test("A fault of this program in a look-up is told as it is, and registers nobody", async () => {
  answerLookUps(() => undefined as never);
  await expect(firstStart([], false).beforeRegister(async () => "")).rejects.toBeInstanceOf(TypeError);
});

describe("What was added to the relay a moment ago", () => {
  /** A refused register: how the connector takes the error. */
  const refused = (code: "unknown_key" | "invalid_credential" | "key_not_allowed", message: string) =>
    new RelayError(code, { message });
  test.each([
    ["a key", refused("unknown_key", "No such key.")],
    ["an issuer", refused("invalid_credential", "unknown_issuer: the relay knows no issuer with this iss and kid.")],
  ])("is presented again for 10 s, and no longer, where it is %s", (_, error) => {
    const told: RelayError[] = [];
    const start = firstStart(told);
    expect(start.mayPass(error)).toBe(true);
    nowMs += 9999;
    expect([start.mayPass(error), start.triesAgain(error)]).toEqual([true, true]);
    nowMs += 1;
    expect(start.mayPass(error)).toBe(false);
    expect(told).toEqual([error, error]);
  });

  test("is nothing that is refused for another reason, nor of an agent that was registered before", () => {
    const start = firstStart([]);
    const others = [
      refused("invalid_credential", "revoked: its issuer revoked it."),
      refused("key_not_allowed", "No."),
    ];
    for (const error of others) expect([start.mayPass(error), start.triesAgain(error)]).toEqual([false, false]);
    start.succeeded();
    expect(start.mayPass(refused("unknown_key", "No such key."))).toBe(false);
  });
});
