import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { frame, OPCODES } from "./support/frames.ts";
import { answersTo } from "./support/raw-http.ts";
import { HANDSHAKE, RawWebsocket } from "./support/raw-websocket.ts";
import { type AttackedService, MARK, relayUnderAttack } from "./support/under-attack.ts";

const { relay, start } = relayUnderAttack("alice");
let pod: AttackedService;

beforeAll(async () => {
  pod = await start("ws-connector");
  for (let n = 0; n < 10; n += 1) {
    await statusOf(HANDSHAKE.replace("AAAA==", MARK));
    await expectServed();
  }
  await pod.remember();
});

/** A client that keeps the rules is served. */
async function expectServed(): Promise<void> {
  const socket = await RawWebsocket.open(pod.port);
  await socket.end();
}

/** The only answer that a handshake gets before the relay closes the connection. */
async function statusOf(bytes: string | Buffer): Promise<number> {
  const answers = await answersTo(pod.port, bytes);
  expect(answers).toHaveLength(1);
  const [{ status, text }] = answers as [(typeof answers)[0]];
  expect(text).not.toContain(MARK);
  if (text !== "") expect(JSON.parse(text)).toMatchObject({ ok: false, status, code: expect.any(String) });
  return status;
}

/** The handshake with another line in place of the one that begins so; null takes it out. */
function withLine(name: string, line: string | null): string {
  const lines = HANDSHAKE.split("\r\n");
  return lines.flatMap((one) => (one.startsWith(name) ? (line ?? []) : one)).join("\r\n");
}
const withKey = (value: string) => withLine("Sec-WebSocket-Key", `Sec-WebSocket-Key: ${value}`);
const withVersion = (value: string) => withLine("Sec-WebSocket-Version", `Sec-WebSocket-Version: ${value}`);
const withMore = (line: string) => HANDSHAKE.replace("\r\n\r\n", `\r\n${line}\r\n\r\n`);

const KEYS = ["", "AAAA", `${"A".repeat(22)}=`, "A".repeat(24), `${"A".repeat(21)}!==`, `${"A".repeat(43)}=`, MARK];
const VERSIONS = ["", "0", "7", "8", "12", "0xd", "13.0", "14", "-13", "99999999999999999999", "NaN", "13, 8", MARK];

const REFUSED: Record<string, readonly string[]> = {
  "no key": [withLine("Sec-WebSocket-Key", null)],
  "a key that is not 16 bytes in base64": KEYS.map(withKey),
  "two keys": [withMore("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")],
  "no version": [withLine("Sec-WebSocket-Version", null)],
  "a version that nobody speaks": VERSIONS.map(withVersion),
  "two versions": [withMore("Sec-WebSocket-Version: 13")],
  "another method": ["POST", "HEAD", "PUT", "OPTIONS"].map((method) => HANDSHAKE.replace("GET", method)),
  "a subprotocol list that is none": ["a,,b", "a b", "a,a", '"quoted"'].map((list) =>
    withMore(`Sec-WebSocket-Protocol: ${list}`),
  ),
  "no host": [withLine("Host", null), withLine("Host", null).replace("HTTP/1.1", "HTTP/1.0")],
  "two hosts": [withMore("Host: relay"), withMore("host: other")],
  "a host that is none": [withLine("Host", "Host: relay other"), withLine("Host", `Host: ${MARK}/ws`)],
  "a header name of two words": [withMore(`${MARK} name: x`)],
  "a NUL in a header": [withMore(`X-Odd: ${MARK}\0`)],
  "a folded header": [withMore(`X-Odd: a\r\n ${MARK}`)],
  "lines that end in a line feed only": [HANDSHAKE.replaceAll("\r\n", "\n")],
  "headers beyond every bound": [withMore(`X-Odd: ${MARK.repeat(5000)}`)],
};

describe.each(Object.entries(REFUSED))("a handshake with %s", (_what, handshakes) => {
  test("is answered 4xx and closed, and the next one is served", async () => {
    for (const handshake of handshakes) {
      const status = await statusOf(handshake);
      expect([handshake, status >= 400 && status < 500]).toEqual([handshake, true]);
    }
    await expectServed();
  });
});

test("a handshake in another version is told which one there is", async () => {
  const [answer] = await answersTo(pod.port, withVersion("8"));
  expect(answer?.head).toMatch(/^sec-websocket-version: 13$/im);
});

test("a handshake for any other path is answered 404, however the path is spelled", async () => {
  const paths = ["/", "/ws/", "//ws", "/WS", "/%77s", "/ws%00", "/ws/..", "/x/../ws", "/ws;x", "/ws#", "*"];
  for (const path of [...paths, `/${MARK}`, "/relay/../ws", `/ws${"/".repeat(5000)}`]) {
    expect([path, await statusOf(HANDSHAKE.replace("/ws", path))]).toEqual([path, 404]);
  }
  await expectServed();
});

describe("a handshake that keeps the rules", () => {
  async function helloTo(handshake: string): Promise<void> {
    const socket = new RawWebsocket(pod.port);
    socket.write(handshake);
    await until("hello", () => socket.texts.length === 1);
    expect(socket.head).not.toContain(MARK);
    expect(socket.head).not.toMatch(/sec-websocket-extensions/i);
    await socket.end();
  }

  test.each([
    ["a query", HANDSHAKE.replace("/ws", `/ws?token=${MARK}`)],
    ["a target in absolute form, whatever its host", HANDSHAKE.replace("/ws", `http://${MARK}.example/ws`)],
    ["a forged Host", HANDSHAKE.replace("Host: relay", `Host: ${MARK}`)],
    ["forged forwarding", withMore(`X-Forwarded-For: ${MARK}\r\nForwarded: for=${MARK}\r\nX-Forwarded-Host: ${MARK}`)],
    ["compression on offer", withMore("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")],
    ["extensions that are no list", withMore(`Sec-WebSocket-Extensions: ;;,=${MARK}`)],
    ["headers that are members of every object", withMore("__proto__: x\r\nconstructor: x\r\ntoString: x")],
  ])("is taken with %s, and repeats nothing of it", async (_what, handshake) => {
    await helloTo(handshake);
  });

  test("is taken byte by byte", async () => {
    const socket = new RawWebsocket(pod.port);
    for (const byte of Buffer.from(HANDSHAKE)) socket.write(Buffer.of(byte));
    await until("hello", () => socket.texts.length === 1);
    await socket.end();
  });

  test("may have its first envelope in the same packet, which is answered", async () => {
    const register: Frame = relay.envelope("alice", "agent.register");
    const socket = new RawWebsocket(pod.port);
    socket.shakeHandsWith(frame(OPCODES.text, JSON.stringify(register)));
    await until("the ack", () => socket.answers.length === 1);
    expect(socket.answers[0]).toMatchObject({ accepted: true, envelope_id: register.id });
    await socket.end();
  });

  test("takes what follows in its packet for frames, never for another request", async () => {
    const socket = new RawWebsocket(pod.port);
    socket.write(`${HANDSHAKE}GET /health HTTP/1.1\r\nHost: relay\r\n\r\n`);
    expect(await socket.untilClosed()).toBe(1002);
    expect(socket.texts).toHaveLength(1);
    await socket.end();
  });

  test("may follow other requests on its connection", async () => {
    const socket = new RawWebsocket(pod.port);
    socket.write("GET /health HTTP/1.1\r\nHost: relay\r\n\r\n");
    await until("the answer", () => socket.isAnswered);
    socket.write(HANDSHAKE);
    await until("hello", () => socket.texts.length === 1);
    await socket.end();
  });

  test("is not taken behind a request that is not answered yet", async () => {
    expect(await answersTo(pod.port, `GET /health HTTP/1.1\r\nHost: relay\r\n\r\n${HANDSHAKE}`)).toEqual([]);
  });
});

test("a refused handshake ends its connection: what is pipelined behind it is not answered", async () => {
  const bytes = `${HANDSHAKE.replace("/ws", "/nowhere")}GET /health HTTP/1.1\r\nHost: relay\r\n\r\n`;
  expect(await statusOf(bytes)).toBe(404);
});

test("a hundred connections that say nothing, or half a handshake, and go, leave nothing", async () => {
  for (let n = 0; n < 100; n += 1) {
    const socket = new RawWebsocket(pod.port);
    socket.write(HANDSHAKE.slice(0, n));
    await socket.end();
  }
  await expectServed();
});
