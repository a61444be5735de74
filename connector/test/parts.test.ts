import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { rowsBetween } from "../../test/support/documents.ts";
import { describeJsonParser, describeUniqueJsonParser } from "../../test/support/json-parser.ts";
import { relayAddress } from "../src/address.ts";
import { backoffMs, jitteredMs } from "../src/backoff.ts";
import { decodeBase64url, encodeBase64url } from "../src/base64url.ts";
import { BoundedQueue } from "../src/bounded-queue.ts";
import { Emitter } from "../src/emitter.ts";
import { CONNECTOR_ERRORS, finalClose, RELAY_ERRORS, RelayError } from "../src/errors.ts";
import { Connector } from "../src/index.ts";
import { parseJson, parseUniqueJson } from "../src/parse-json.ts";
import type { Delivery } from "../src/types.ts";
import { outdatedWarning, VERSION } from "../src/version.ts";
import { testAgent } from "./kit.ts";

const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
const addresses = JSON.parse(
  await readFile(new URL("../../connector-python/tests/addresses.json", import.meta.url), "utf8"),
);
const protocol = await readFile(new URL("../../docs/protocol.md", import.meta.url), "utf8");

describe("base64url", () => {
  test.each([[""], ["AA"], ["AAA"], ["_-8"], ["AAAA"]])("%j is read and written back", (text) => {
    expect(encodeBase64url(decodeBase64url(text) as Uint8Array)).toBe(text);
  });

  test.each([["A"], ["AB"], ["AAA="], ["+/8"], ["AA A"], ["AA\n"]])("%j is no base64url", (text) => {
    expect(decodeBase64url(text)).toBeUndefined();
  });
});

describe("The address", () => {
  test.each([
    ["http://127.0.0.1:8080", "ws://127.0.0.1:8080/ws", "http://127.0.0.1:8080", "127.0.0.1:8080"],
    ["https://Relay.example:443/", "wss://relay.example/ws", "https://relay.example", "relay.example"],
    ["https://relay.example/base/", "wss://relay.example/base/ws", "https://relay.example/base", "relay.example"],
    ["ws://relay.example:80", "ws://relay.example/ws", "http://relay.example", "relay.example"],
    ["wss://relay.example:80/relay", "wss://relay.example:80/relay", "https://relay.example:80", "relay.example:80"],
    ["ws://relay.example/agents/live", "ws://relay.example/agents/live", "http://relay.example", "relay.example"],
    ["ws://relay.example/base/ws", "ws://relay.example/base/ws", "http://relay.example/base", "relay.example"],
  ])("%s leads to %s", (given, websocket, base, host) => {
    const address = { websocket, base, host };
    expect(relayAddress(given)).toEqual(address);
    expect(relayAddress(new URL(given))).toEqual(address);
  });

  describe("of the table that the connector for Python and npm run keys are held to", () => {
    test("has the host and the path of the URL standard", () => {
      for (const [url, host] of Object.entries(addresses.hosts)) {
        expect([url, relayAddress(url).host]).toEqual([url, host]);
      }
      for (const [url, websocket] of Object.entries(addresses.paths)) {
        expect([url, relayAddress(url).websocket]).toEqual([url, websocket]);
      }
    });

    test.each(Object.entries<string[]>(addresses.refused).flatMap(([told, urls]) => urls.map((url) => [url, told])))(
      "%j is refused, and the error says what to write",
      (url, told) => {
        expect(() => relayAddress(url as string)).toThrow(new TypeError(`url: ${told}`));
      },
    );
  });

  test("that is refused over HTTP is named, and neither its password nor its query", () => {
    const users = ["user:secret", "user:/secret", "user:1/secret", "user:1?secret", "user:1#secret", "user:\\secret"];
    const addresses = users.map((user) => `http://${user}@relay.example`);
    for (const http of [...addresses, new URL("http://relay.example?token=secret")]) {
      expect(() => relayAddress("http://relay.example", http)).toThrow(/^httpUrl: (?!.*secret)/);
    }
  });

  test("over HTTP is another one where that is told", () => {
    expect(relayAddress("ws://127.0.0.1:8082/ws", "https://relay.example/base/")).toEqual({
      websocket: "ws://127.0.0.1:8082/ws",
      base: "https://relay.example/base",
      host: "127.0.0.1:8082",
    });
  });
});

describe("Waits between attempts", () => {
  test("are random, up to a bound that doubles until five seconds", () => {
    expect([0, 1, 2, 3, 4, 5, 20].map((attempt) => backoffMs(attempt, 1))).toEqual([
      250, 500, 1000, 2000, 4000, 5000, 5000,
    ]);
    expect(backoffMs(3, 0)).toBe(0);
    expect(backoffMs(2, 0.5)).toBe(500);
  });

  test("that were asked for are kept, and at most half as long again, within their bound", () => {
    expect([0, 1].map((random) => jitteredMs(1000, undefined, random))).toEqual([1000, 1500]);
    expect(jitteredMs(1000, 1200, 1)).toBe(1200);
  });
});

describe("The bounded queue", () => {
  test("drops nothing of others for the sender with the most", async () => {
    const queue = new BoundedQueue<string>(3, ([sender]) => sender as string);
    for (const item of ["a1", "b1", "b2", "b3", "b4", "c1"]) queue.push(item);
    expect([await queue.take(), await queue.take(), await queue.take()]).toEqual(["a1", "b4", "c1"]);
  });

  test("gives what is left after the end, then ends; readers that wait end at once", async () => {
    const queue = new BoundedQueue<number>(2, () => "one");
    const waits = queue.take();
    queue.push(1);
    queue.push(2);
    expect(await waits).toBe(1);
    queue.end();
    queue.push(3);
    expect([await queue.take(), await queue.take()]).toEqual([2, undefined]);
  });

  test("throws what ended it, after what is left", async () => {
    const queue = new BoundedQueue<number>(2, () => "one");
    queue.push(1);
    queue.end(new Error("why"));
    expect(await queue.take()).toBe(1);
    await expect(queue.take()).rejects.toThrow("why");
  });
});

describe("The catalogue of errors", () => {
  test("has every code that the relay sends over the websocket", () => {
    const sent = rowsBetween(protocol, "errors").filter(([, , websocket]) => websocket === "yes");
    expect(Object.keys(RELAY_ERRORS).sort()).toEqual(sent.map(([code = ""]) => code.slice(1, -1)).sort());
  });

  test("ends for good after the closes that the protocol names, and no other", () => {
    for (const [code, , reconnect] of rowsBetween(protocol, "close codes")) {
      expect([code, finalClose(Number(code)) === undefined ? "yes" : "no"]).toEqual([code, reconnect]);
    }
    expect(finalClose(1006)).toBeUndefined();
  });

  test("stands in the README as it is", () => {
    const entries = Object.entries(CONNECTOR_ERRORS);
    const expected = entries.map(([code, { retry, message, hint }]) => [`\`${code}\``, retry, message, hint]);
    expect(rowsBetween(readme, "connector errors")).toEqual(expected);
  });

  test("has each code once", () => {
    const codes = [...Object.keys(RELAY_ERRORS), ...Object.keys(CONNECTOR_ERRORS)];
    expect(new Set(codes).size).toBe(codes.length);
  });
});

describe("Options that can never work", () => {
  test.each([
    [{ url: "nonsense" }, "url"],
    [{ agent: "agent://Alice" }, "agent"],
    [{ maxDeliveryAgeMs: -1 }, "maxDeliveryAgeMs"],
    [{ maxDeliveryAgeMs: Number.NaN }, "maxDeliveryAgeMs"],
  ])("are refused at once, by their name: %j", (wrong, what) => {
    const { agent, key } = testAgent("alice");
    expect(() => new Connector({ url: "http://127.0.0.1:1", agent, key, ...wrong })).toThrow(
      expect.objectContaining({ name: "TypeError", message: expect.stringContaining(what) }),
    );
  });
});

test("The version is that of package.json", async () => {
  const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
  expect(VERSION).toBe(version);
});

describe("A connector is warned of", () => {
  test.each([
    ["a higher number", "0.2.0-ba", "0.1.9-bb"],
    ["a higher number, compared as a number", "0.10.0", "0.9.0"],
    ["a higher major number before all others", "1.0.0-ba", "0.9.9-ba"],
    ["another build of its number", "0.1.0-ba", "0.1.0-bb"],
    ["a higher number than that of sources", "0.1.1-ba", "0.1.0"],
  ])("%s", (_, offered, own) => {
    expect(outdatedWarning(offered, own)).toMatchObject({ code: "outdated_connector" });
  });
});

describe("A connector is not warned of", () => {
  test.each([
    ["its own version", "0.1.0-ba", "0.1.0-ba"],
    ["a lower number", "0.1.0-ba", "0.2.0-bb"],
    ["a build of the same number, when it runs from sources", "0.1.0-ba", "0.1.0"],
    ["a relay that hands out none", undefined, "0.1.0-ba"],
    ["what is no version", "newest", "0.1.0-ba"],
    ["what is too long for one", `0.2.0-${"b".repeat(65)}`, "0.1.0-ba"],
  ])("%s", (_, offered, own) => {
    expect(outdatedWarning(offered, own)).toBeUndefined();
  });
});

describe("What nobody listens to", () => {
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

  test("A listener that throws or rejects is told of as an error, and the others are still called", async () => {
    const emitter = new Emitter();
    const [codes, heard] = [[] as string[], jest.fn()];
    emitter.on("delivery", () => {
      throw new Error("mine");
    });
    emitter.on("delivery", () => Promise.reject(new Error("mine too")));
    emitter.on("error", () => {
      throw new Error("and mine");
    });
    emitter.on("error", ({ code }) => codes.push(code));
    emitter.on("delivery", () => codes.push("of one that was taken off"))();
    emitter.on("delivery", heard);
    emitter.emit("delivery", {} as Delivery);
    await turn();
    expect([codes, heard.mock.calls.length]).toEqual([["listener_failed", "listener_failed"], 1]);
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
});

describeJsonParser(parseJson);
describeUniqueJsonParser(parseUniqueJson);
