import { PassThrough } from "node:stream";
import { expect, test } from "@jest/globals";
import { reportConnection } from "../../src/cli/connection-reports.ts";
import { Repeats } from "../../src/cli/repeats.ts";
import { Reporter } from "../../src/cli/reporter.ts";
import type { Connector } from "../../src/connector.ts";
import { Emitter } from "../../src/emitter.ts";
import { RelayError } from "../../src/errors.ts";
import { jsonLines } from "../kit.ts";

test("What is said again and again is said once a minute, with how often it was left out", () => {
  const repeats = new Repeats();
  expect([0, 1, 59_999, 60_000, 60_001].map((now) => repeats.next("a", now))).toEqual([
    0,
    undefined,
    undefined,
    2,
    undefined,
  ]);
});

test("A relay writes few lines with all that it says unasked; what is about an envelope is told of each", () => {
  const emitter = new Emitter();
  const stderr = new PassThrough();
  const connector = {
    ...{ agent: "agent://alice", state: { status: "online" } },
    on: emitter.on.bind(emitter),
  } as unknown as Connector;
  reportConnection(connector, "ws://relay", new Reporter(stderr, true), true);
  for (let n = 0; n < 100; n += 1) {
    emitter.emit("notice", { kind: "slow_down", envelopesPerSecond: 1, bytesPerSecond: n });
    emitter.emit("notice", { kind: "released", reason: "r" });
    emitter.emit("overflow", { dropped: n });
    emitter.emit("error", new RelayError("unavailable"));
    emitter.emit("error", new RelayError("malformed_delivery"));
  }
  for (const envelopeId of ["1", "2"]) emitter.emit("error", new RelayError("forged_delivery", { envelopeId }));
  const said = jsonLines(String(stderr.read())).map(({ event, code }) => code ?? event);
  expect(said).toEqual([
    "slow_down",
    "released",
    "overflow",
    "unavailable",
    "malformed_delivery",
    "forged_delivery",
    "forged_delivery",
  ]);
});

test.each([
  ["key_revoked_or_expired", "its key was revoked", "(relay keygen), have the relay's operator list it"],
  ["expired", "no credential of it holds any more: expired", "relay issue"],
])(
  "An agent that the relay lets go is told why and what to do, of a listed key and of a credential: %s",
  (reason, why, todo) => {
    const emitter = new Emitter();
    const stderr = new PassThrough();
    const connector = { agent: "agent://alice", on: emitter.on.bind(emitter) } as unknown as Connector;
    reportConnection(connector, "ws://relay", new Reporter(stderr, false), false);
    emitter.emit("notice", { kind: "released", reason });
    const said = String(stderr.read());
    expect(said).toContain(why);
    expect(said).toContain(todo);
    expect(said.includes("credential")).toBe(reason !== "key_revoked_or_expired");
  },
);

test("Of a notice that lists no session nothing is said", () => {
  const emitter = new Emitter();
  const stderr = new PassThrough();
  const connector = { agent: "agent://alice", on: emitter.on.bind(emitter) } as unknown as Connector;
  reportConnection(connector, "ws://relay", new Reporter(stderr, true), true);
  emitter.emit("notice", { kind: "pending_sessions", total: 1, sessions: [] });
  emitter.emit("notice", { kind: "decided_sessions", sessions: [] });
  expect(stderr.read()).toBeNull();
});

test("Each kind is said the first time", () => {
  const repeats = new Repeats();
  expect(["a", "b"].map((kind) => repeats.next(kind, 1))).toEqual([0, 0]);
});
