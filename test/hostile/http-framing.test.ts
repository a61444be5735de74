import { beforeAll, describe, expect, test } from "@jest/globals";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import { fc } from "../support/fast-check.ts";
import { answersTo, type RawAnswer, request } from "./support/raw-http.ts";
import { type AttackedService, MARK, relayUnderAttack } from "./support/under-attack.ts";

const { start } = relayUnderAttack("alice");
const targets: AttackedService[] = [];

beforeAll(async () => {
  targets.push(await start("gateway", { RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0" }), await start("ops-reporting"));
  for (const { port } of targets) {
    for (let n = 0; n < 50; n += 1) await answersTo(port, request("GET", "/health"), "\0");
    await answersTo(port, request("POST", "/api/self-test", { fields: JSON_TYPE, body: "{}" }));
  }
  await Promise.all(targets.map((target) => target.remember()));
});

const JSON_TYPE = ["Content-Type: application/json"];
/** Stands behind each attack: a server that took the attack's length for another one would answer it. */
const SMUGGLED = "GET /health HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n";
const HEAD = "POST /api/self-test HTTP/1.1\r\nHost: relay\r\nContent-Type: application/json\r\n";
const get = (...lines: string[]) => ["GET /health HTTP/1.1", "Host: relay", ...lines, "", SMUGGLED].join("\r\n");
const post = (fields: string, body = "") => `${HEAD}${fields}\r\n\r\n${body}${SMUGGLED}`;
const chunked = (body: string) => post("Transfer-Encoding: chunked", body);
const coded = (coding: string) => post(`Transfer-Encoding: ${coding}`, "0\r\n\r\n");
const sized = (length: string) => post(`Content-Length: ${length}`);

/** 400, or the 404 of a service without that surface, which does not wait for the body. */
function expectRefusal({ status, head, text }: RawAnswer): void {
  expect([400, 404]).toContain(status);
  expect(head + text).not.toContain(MARK);
  expect(head).toContain("application/problem+json");
  expect(JSON.parse(text)).toMatchObject({ ok: false, status, code: expect.any(String), hint: expect.any(String) });
}

const REFUSED: Record<string, readonly string[]> = {
  "a length and chunks": [
    post("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"),
    post("Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
  ],
  "two lengths, the same or not": ["0\r\nContent-Length: 0", "5\r\nContent-Length: 0", "0, 0", "0,5"].map(sized),
  "a length that is no number": ["", "+0", "-1", "0x0", "1e1", "0 0", "0;", "٠", MARK, "9".repeat(30)].map(sized),
  "a length in a folded line": ["0\r\n 5", "0\r\n\t5", "\r\n 0"].map(sized),
  "a coding that is not chunks in the end": ["identity", "chunked, identity", "gzip", "xchunked", MARK].map(coded),
  "chunks twice, or oddly spelled": [
    ...["chunked, chunked", "chunked\r\nTransfer-Encoding: chunked", "chunked\r\nTransfer-Encoding: identity"],
    ...['"chunked"', "chunked;q=1", "\x0bchunked", "\r\n chunked", "chunke\0d"],
  ].map(coded),
  "a blank before a colon": [post("Transfer-Encoding : chunked", "0\r\n\r\n"), post("Content-Length : 0")],
  "a chunk whose size is none": ["-1", "0x0", "0 ", " 0", "+0", "g", "", "F".repeat(17), `${MARK}`].map((size) =>
    chunked(`${size}\r\n\r\n`),
  ),
  "a chunk that is longer or shorter than its size": [
    chunked("1\r\nxy\r\n0\r\n\r\n"),
    chunked("1\r\nx0\r\n\r\n"),
    chunked("5\r\nx\r\n0\r\n\r\n"),
  ],
  "a chunk extension that hides a line or has no end": [
    chunked("0;a\nb\r\n\r\n"),
    chunked('0;a="b\r\n"\r\n\r\n'),
    chunked(`1;${"a".repeat(20_000)}\r\nx\r\n0\r\n\r\n`),
  ],
  "a trailer with a length, or beyond every bound": [
    chunked("0\r\nContent-Length: 5\r\n\r\n"),
    chunked(`0\r\nX: ${MARK.repeat(6000)}\r\n\r\n`),
    chunked(`0\r\n${"X: y\r\n".repeat(5000)}\r\n`),
  ],
  "lines that end in a bare LF or CR": [
    "GET /health HTTP/1.1\nHost: relay\n\n",
    "GET /health HTTP/1.1\rHost: relay\r\r",
    get(`X: a\nTransfer-Encoding: chunked`),
    get(`X: a\rY: b`),
    chunked("1\nx\n0\n\n"),
  ],
  "a field that is none": [`${MARK} x: a`, ": a", MARK, `X: ${MARK}\0`, `X: a\r\n ${MARK}`, "\x01: a"].map((line) =>
    get(line),
  ),
  "fields beyond every bound": [
    get(`X: ${MARK.repeat(5000)}`),
    get(`${MARK.repeat(5000)}: x`),
    get(...Array.from({ length: 1000 }, (_, n) => `X${n}: y`)),
    post(Array.from({ length: 200 }, (_, n) => `X${n}: y`).join("\r\n")),
    `GET /${MARK.repeat(5000)} HTTP/1.1\r\nHost: relay\r\n\r\n`,
  ],
  "another protocol": [
    ...["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "*1\r\n$4\r\nPING\r\n"],
    ...["SSH-2.0-x\r\n", "EHLO relay\r\n", "GET /health HTTP/9.9\r\n\r\n", "GET /health http/1.1\r\n\r\n"],
    ...["get /health HTTP/1.1\r\n\r\n", "GARBLE /health HTTP/1.1\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "\0".repeat(100)],
  ],
  "no host": ["GET /health HTTP/1.1\r\n\r\n"],
  "two hosts, the same or not": [
    ...[get("Host: relay"), get("hOST: other"), get("X: y", "Host:")],
    `GET http://relay/health HTTP/1.1\r\nHost: relay\r\nHost: relay\r\n\r\n`,
    `GET /health HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n`,
    post("Host: other\r\nContent-Length: 2", "{}"),
  ],
  "a host that is none": [
    "relay other",
    "relay, relay",
    "relay/health",
    "http://relay",
    "a@b",
    "relay:port",
    `${MARK}\\`,
  ].map((host) => `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  "a host in a folded line": ["GET /health HTTP/1.1\r\nHost: relay\r\n other\r\n\r\n"],
};

describe.each(Object.entries(REFUSED))("a request with %s", (_what, attacks) => {
  test("is refused once and ends its connection: nothing behind it is read as a request", async () => {
    for (const { port } of targets) {
      for (const attack of attacks) {
        const answers = await answersTo(port, attack);
        expect([attack, answers.length]).toEqual([attack, 1]);
        expectRefusal(answers[0] as RawAnswer);
      }
    }
  });
});

describe("requests in one packet", () => {
  const statuses = async (port: number, ...bytes: string[]) =>
    (await answersTo(port, ...bytes)).map(({ status }) => status);

  test("are answered in order, each for itself", async () => {
    const one = (target: string) => `GET ${target} HTTP/1.1\r\nHost: relay\r\n\r\n`;
    for (const { port } of targets) {
      const all = [one("/health"), one("/nowhere"), `${HEAD}Content-Length: 2\r\n\r\n{}`, SMUGGLED].join("");
      const [first, second, third, last] = await statuses(port, all);
      expect([first, second, last]).toEqual([200, 404, 200]);
      expect([400, 404]).toContain(third);
    }
  });

  test("whose body holds a request are answered once for it", async () => {
    for (const { port } of targets) {
      const body = SMUGGLED;
      expect(
        await statuses(
          port,
          `GET /health HTTP/1.1\r\nHost: relay\r\nContent-Length: ${body.length}\r\n\r\n${body}${SMUGGLED}`,
        ),
      ).toEqual([200, 200]);
      const size = body.length.toString(16);
      const inChunks = `GET /health HTTP/1.1\r\nHost: relay\r\nTransfer-Encoding: chunked\r\n\r\n${size};x=y\r\n${body}\r\n0\r\n\r\n`;
      expect(await statuses(port, inChunks + SMUGGLED)).toEqual([200, 200]);
    }
  });

  test("are all answered, up to those that may wait; a flood ends its connection, and costs others nothing", async () => {
    const health = "GET /health HTTP/1.1\r\nHost: relay\r\n\r\n";
    for (const { port } of targets) {
      const waiting = health.repeat(HTTP_LIMITS.waitingRequests);
      expect(await statuses(port, waiting + SMUGGLED)).toEqual(Array(HTTP_LIMITS.waitingRequests + 1).fill(200));
      expect((await statuses(port, health.repeat(900))).length).toBeLessThanOrEqual(HTTP_LIMITS.waitingRequests);
      expect(await statuses(port, SMUGGLED)).toEqual([200]);
    }
  });

  test("may come byte by byte, after empty lines", async () => {
    for (const { port } of targets) expect(await statuses(port, "\r\n\r\n", ...SMUGGLED)).toEqual([200]);
  });
});

test("An expectation that nobody knows is refused in words, and ends its connection", async () => {
  for (const { port } of targets) {
    const answers = await answersTo(port, get(`Expect: ${MARK}`));
    expect(answers.map(({ status }) => status)).toEqual([417]);
    expect(JSON.parse(answers[0]?.text ?? "")).toMatchObject({ code: "expectation_failed" });
    expect(answers[0]?.text).not.toContain(MARK);
  }
});

test("A client that expects to be told to go on is told, and answered", async () => {
  for (const { port } of targets) {
    const answers = await answersTo(port, post("Expect: 100-continue\r\nContent-Length: 2", "{}"));
    expect(answers.map(({ status }) => status)).toEqual([100, expect.any(Number), 200]);
  }
});

test("A request to open a tunnel is refused and ends its connection", async () => {
  for (const { port } of targets) {
    for (const target of ["relay:80", "/health", `${MARK}:443`]) {
      const answers = await answersTo(port, `CONNECT ${target} HTTP/1.1\r\nHost: relay\r\n\r\n${SMUGGLED}`);
      expect(answers.map(({ status }) => status)).toEqual([404]);
      expect(answers[0]?.head).toContain("application/problem+json");
    }
  }
});

test("Any bytes are answered or hung up on, with nothing of them in the answer", async () => {
  const lines = fc.constantFrom(
    "GET / HTTP/1.1",
    "Host: relay",
    "Content-Length: 3",
    "Transfer-Encoding: chunked",
    "",
    MARK,
  );
  const bytes = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 200 }).map((some) => Buffer.from(some)),
    fc
      .array(fc.oneof(lines, fc.string({ unit: "binary", maxLength: 20 })), { maxLength: 12 })
      .map((some) => Buffer.from(some.join("\r\n"))),
  );
  const property = fc.asyncProperty(fc.constantFrom(0, 1), bytes, async (index, some) => {
    const { port } = targets[index] as AttackedService;
    const answers = await answersTo(port, some, "\r\n\r\n\0\r\n\r\n");
    for (const { status, head, text } of answers) {
      expect(status).toBeGreaterThanOrEqual(200);
      expect(status).toBeLessThan(500);
      expect(head + text).not.toContain(MARK);
    }
  });
  await fc.assert(property, { numRuns: 150 });
});
