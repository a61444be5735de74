import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { Emitter } from "../src/emitter.ts";
import { RelayError } from "../src/errors.ts";
import type { Delivery } from "../src/types.ts";

let printed: unknown[][];
beforeEach(() => {
  printed = [];
  jest.spyOn(console, "error").mockImplementation((...args) => void printed.push(args));
});
afterEach(() => {
  jest.restoreAllMocks();
});

const turn = () => new Promise(setImmediate);
const starting = (code: string) => [expect.stringContaining(`agent-relay-connector: ${code}: `)];

test("Errors and warnings that nobody listens to are printed, the first of each, and nothing of their causes", () => {
  const emitter = new Emitter();
  const refused = () => new RelayError("unreachable", { cause: new Error("what another one sent") });
  for (let n = 0; n < 3; n += 1) emitter.emit("error", refused());
  emitter.emit("error", new RelayError("forged_delivery"));
  emitter.emit("warning", { code: "clock_untrusted", message: "m", hint: "h" });
  expect(printed).toEqual([starting("unreachable"), starting("forged_delivery"), starting("clock_untrusted")]);
});

test("Another cause of the same code is printed too, and the same again after the agent was registered", () => {
  const emitter = new Emitter();
  const refused = (message: string) => emitter.emit("error", new RelayError("unreachable", { message }));
  for (const message of ["connection refused", "unknown host", "connection refused"]) refused(message);
  expect(printed).toHaveLength(2);
  emitter.logAnew();
  refused("connection refused");
  expect(printed).toHaveLength(3);
});

test("Of ever new texts no more than a hundred are printed", () => {
  const emitter = new Emitter();
  for (let n = 0; n < 200; n += 1) emitter.emit("error", new RelayError("refused", { message: `refused ${n}` }));
  expect(printed).toHaveLength(100);
});

test("A listener that throws is printed each time with what it threw, and so is one of errors", async () => {
  const emitter = new Emitter();
  const [thrown, rejected] = [new Error("mine"), new Error("mine too")];
  emitter.on("delivery", () => {
    throw thrown;
  });
  for (let n = 0; n < 2; n += 1) emitter.emit("delivery", {} as Delivery);
  await turn();
  emitter.on("error", () => Promise.reject(rejected));
  emitter.emit("delivery", {} as Delivery);
  await turn();
  const failed = starting("listener_failed");
  expect(printed).toEqual([thrown, thrown, rejected].map((error) => [...failed, error]));
});

test("Nothing is printed of what a listener hears", async () => {
  const emitter = new Emitter();
  const heard: string[] = [];
  emitter.on("error", ({ code }) => heard.push(code));
  emitter.on("warning", ({ code }) => heard.push(code));
  emitter.emit("error", new RelayError("unreachable"));
  emitter.emit("warning", { code: "clock_untrusted", message: "m", hint: "h" });
  await turn();
  expect([heard, printed]).toEqual([["unreachable", "clock_untrusted"], []]);
});
