import { beforeEach, expect, test } from "@jest/globals";
import type { CongestionMarks, RouteMark } from "window/congestion.ts";
import { unavailable } from "window/unavailable.ts";
import { CongestionNotices } from "../src/congestion.ts";
import type { Connection } from "../src/connection.ts";
import { Ownership } from "../src/ownership.ts";

let calls: { readonly marks: readonly RouteMark[]; readonly answer: PromiseWithResolvers<void> }[];
let notices: CongestionNotices;

/** A connection that owns an agent of the same name under the epoch 7. */
function connectionOf(id: string) {
  const agents = new Ownership(id);
  agents.apply(`agent://${id}`, { kind: "granted", epoch: 7, key: "k", heardAt: 0 });
  const connection = { id, agents, isCongested: true };
  return connection as { -readonly [Member in keyof typeof connection]: (typeof connection)[Member] } & Connection;
}

const said = () =>
  calls.map(({ marks }) => marks.map(({ agent, isCongested }) => `${agent.slice("agent://".length)} ${isCongested}`));

beforeEach(() => {
  calls = [];
  const write = (marks: readonly RouteMark[]) => {
    const answer = Promise.withResolvers<void>();
    calls.push({ marks, answer });
    return answer.promise;
  };
  notices = new CongestionNotices({ write } as unknown as CongestionMarks);
});

test("One call is under way at a time, and the next says what is true by then", async () => {
  const [one, two] = [connectionOf("one"), connectionOf("two")];
  notices.changed(one);
  notices.changed(two);
  Object.assign(one, { isCongested: false });
  notices.changed(one);
  expect(said()).toEqual([["one true"]]);
  const sent = notices.flush();
  calls[0]?.answer.resolve();
  await Promise.resolve();
  await Promise.resolve();
  expect(said().slice(1)).toEqual([["two true", "one false"]]);
  calls[1]?.answer.resolve();
  await sent;
  await notices.flush();
  expect(calls).toHaveLength(2);
});

test("What Redis did not take is said again with the next flush", async () => {
  notices.changed(connectionOf("one"));
  const failed = notices.flush();
  calls[0]?.answer.reject(unavailable());
  await failed;
  const again = notices.flush();
  calls[1]?.answer.resolve();
  await again;
  await notices.flush();
  expect(said()).toEqual([["one true"], ["one true"]]);
});

test("Marked are all agents of a connection, under the epochs that are known, and those whose register is under way", () => {
  const one = connectionOf("one");
  one.agents.apply("agent://asked", { kind: "requested" });
  one.agents.apply("agent://again", { kind: "granted", epoch: 8, key: "k", heardAt: 0 });
  one.agents.apply("agent://again", { kind: "requested" });
  one.agents.apply("agent://unanswered", { kind: "unanswered", key: "k" });
  notices.changed(one);
  const epochs = calls[0]?.marks.map(({ agent, epoch }) => [agent, epoch]);
  expect(Object.fromEntries(epochs ?? [])).toEqual({
    "agent://one": 7,
    "agent://asked": null,
    "agent://again": null,
    "agent://unanswered": null,
  });
});
