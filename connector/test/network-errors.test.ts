import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { RelayError } from "../src/errors.ts";
import {
  isRefusedUpgrade,
  networkErrorOf,
  noRelayAt,
  retryAfterOf,
  unreachable,
  upgradeRefusal,
  wasNeverSent,
} from "../src/network-errors.ts";
import { Socket } from "../src/socket.ts";
import { SELF_SIGNED } from "./self-signed.ts";

const { redirects } = JSON.parse(
  await readFile(new URL("../../connector-python/tests/addresses.json", import.meta.url), "utf8"),
) as { redirects: Record<string, string | null> };
const retryAfter = JSON.parse(
  await readFile(new URL("../../connector-python/tests/retry_after.json", import.meta.url), "utf8"),
) as { now: string; waits: [text: string, seconds: number | null][] };

const tlsFailures = JSON.parse(
  await readFile(new URL("../../connector-python/tests/tls_failures.json", import.meta.url), "utf8"),
) as Record<"fix" | "later", string[]>;

/** As Node says it of a handshake that failed while it wrote. */
const eproto = (reason: string) => ({
  code: "EPROTO",
  message: `write EPROTO 40BD:error:0A00010B:SSL routines:any_function:${reason}:../deps/openssl/ssl/any.c:77:`,
});

const FITS: readonly (readonly [
  said: { name?: string; code: string; message?: string },
  hint: RegExp,
  retry: string,
])[] = [
  [{ code: "ECONNREFUSED" }, /Start the relay/, "later"],
  [{ code: "ECONNRESET" }, /https:/, "later"],
  [{ code: "EPIPE" }, /https:/, "later"],
  [{ code: "ENOTFOUND" }, /host of the relay's address/, "later"],
  [{ code: "EAI_AGAIN" }, /DNS/, "later"],
  [{ code: "EHOSTUNREACH" }, /network/, "later"],
  [{ code: "ENETUNREACH" }, /network/, "later"],
  [{ code: "ETIMEDOUT" }, /firewalls/, "later"],
  [{ code: "CERT_HAS_EXPIRED" }, /Renew/, "fix"],
  [{ code: "CERT_NOT_YET_VALID" }, /clock/, "fix"],
  [{ code: "CERT_REVOKED" }, /another certificate/, "fix"],
  [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, /NODE_EXTRA_CA_CERTS/, "fix"],
  [{ code: "SELF_SIGNED_CERT_IN_CHAIN" }, /NODE_EXTRA_CA_CERTS/, "fix"],
  [{ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }, /intermediate certificates/, "fix"],
  [{ code: "ERR_TLS_CERT_ALTNAME_INVALID" }, /host name/, "fix"],
  [{ code: "HPE_INVALID_CONSTANT" }, /host and port.*if the port speaks TLS, use https:/, "fix"],
  [{ code: "HPE_INVALID_VERSION" }, /host and port/, "fix"],
  [{ code: "HPE_INVALID_STATUS" }, /host and port/, "fix"],
  [{ code: "HPE_INVALID_HEADER_TOKEN" }, /while its relay is away/, "later"],
  [{ code: "HPE_HEADER_OVERFLOW" }, /while its relay is away/, "later"],
  [{ code: "ERR_SSL_WRONG_VERSION_NUMBER" }, /plain http/, "fix"],
  [{ code: "ERR_SSL_PACKET_LENGTH_TOO_LONG" }, /plain http/, "fix"],
  [eproto("wrong version number"), /plain http/, "fix"],
  [{ code: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION" }, /TLS 1\.2/, "fix"],
  [eproto("tlsv1 alert protocol version"), /TLS 1\.2/, "fix"],
  [{ code: "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED" }, /presents none/, "fix"],
  [eproto("ssl/tls alert handshake failure"), /client certificate/, "fix"],
  [{ code: "ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE" }, /client certificate/, "fix"],
  [{ code: "UNABLE_TO_GET_ISSUER_CERT_LOCALLY" }, /intermediate certificates/, "fix"],
  [{ code: "CERT_SIGNATURE_FAILURE" }, /intermediate certificates/, "fix"],
  [{ code: "INVALID_CA" }, /intermediate certificates/, "fix"],
  [{ code: "INVALID_PURPOSE" }, /intermediate certificates/, "fix"],
  [{ code: "CERT_CHAIN_TOO_LONG" }, /intermediate certificates/, "fix"],
  [{ code: "UNSPECIFIED" }, /intermediate certificates/, "fix"],
  [eproto("tlsv1 alert internal error"), /Check the relay's address/, "later"],
  [{ code: "ERR_SSL_BAD_RECORD_TYPE" }, /Check the relay's address/, "later"],
  [{ code: "EWHATEVER" }, /Check the relay's address/, "later"],
];

describe("The hint of a failed connection fits", () => {
  test.each(FITS.map(([said, hint, retry]) => [said.message ?? said.code, said, hint, retry] as const))(
    "%s",
    (_, said, hint, retry) => {
      const { why, hint: given, retry: advised } = networkErrorOf(said);
      expect([given, advised]).toEqual([expect.stringMatching(hint), retry]);
      expect(why).toMatch(/^[a-z]/);
      expect(why).not.toContain("EPROTO");
    },
  );

  test.each(Object.entries(tlsFailures))(
    "and is %s in both languages for the same failures of TLS",
    (retry, reasons) => {
      for (const reason of reasons)
        for (const said of [{ code: `ERR_SSL_${reason}` }, eproto(reason.toLowerCase().replaceAll("_", " "))])
          expect([reason, networkErrorOf(said).retry]).toEqual([reason, retry]);
    },
  );

  test("and names the code that is not known, in a sentence", () => {
    expect(networkErrorOf({ code: "EWHATEVER" }).why).toBe("the connection failed (EWHATEVER)");
    expect(networkErrorOf({}).why).toBe("the connection failed");
  });
});

describe("A refused upgrade", () => {
  const hintAt = (status: number, address: string) => upgradeRefusal({ status, headers: {} }, new URL(address)).hint;

  test.each([301, 400, 401, 403, 404, 426])(
    "with %d at a path that does not end in /ws names the address with /ws, and that of HTTP",
    (status) => {
      const hint = hintAt(status, "https://relay.example/prefix");
      expect(hint).toContain("at https://relay.example/prefix, use that address, or wss://relay.example/prefix/ws.");
    },
  );

  test("at a path that ends in /ws names no other, nor does one that may pass", () => {
    expect(hintAt(404, "http://relay.example/prefix/ws")).not.toContain("ws://");
    expect(hintAt(503, "http://relay.example/prefix")).not.toContain("ws://");
  });

  test("with 404 behind a second /ws names the address without it", () => {
    expect(hintAt(404, "https://relay.example/prefix/ws/ws")).toContain("Use https://relay.example/prefix: ");
  });

  test("with 400 over plain HTTP, as servers of TLS answer it, names https", () => {
    expect(hintAt(400, "http://relay.example:8443/ws")).toContain("use https:// (or wss://)");
    for (const [status, address] of [
      [400, "https://relay.example/ws"],
      [404, "http://relay.example/ws"],
    ] as const)
      expect(hintAt(status, address)).not.toContain("TLS");
  });
});

describe("An answer to the upgrade", () => {
  const answered = (status: number, headers = {}) => unreachable("wss://relay.example/ws", { status, headers });

  test.each(Object.entries(redirects))("that redirects to %j names that as %p", (location, place) => {
    const said =
      "The relay at https://relay.example/x/ws is not reachable: the upgrade to a websocket was answered with 301";
    const { message } = unreachable("wss://relay.example/x/ws", { status: 301, headers: { location } });
    expect(message).toBe(place === null ? `${said}.` : `${said}, a redirect to ${place}.`);
  });

  test("that redirects is none that says where to with another number of headers than one", () => {
    for (const headers of [{}, { location: ["/a", "/b"] }]) {
      expect(answered(301, headers)).toMatchObject({
        cause: { status: 301 },
        message: expect.stringMatching(/301\.$/),
      });
    }
  });

  test("may ask to be left alone for so many seconds, or until a date, and is for a minute at most", () => {
    jest.spyOn(Date, "now").mockReturnValue(Date.parse(retryAfter.now));
    for (const [text, seconds] of retryAfter.waits)
      expect([text, retryAfterOf(text)]).toEqual([text, seconds === null ? undefined : seconds * 1000]);
    const asked = answered(503, { "retry-after": "7" });
    expect(asked).toMatchObject({ retryAfterMs: 7000, hint: expect.stringContaining("in 7 s") });
    for (const [status, headers] of [
      [503, {}],
      [403, { "retry-after": "7" }],
    ] as const)
      expect(answered(status, headers).retryAfterMs).toBeUndefined();
    jest.restoreAllMocks();
  });
});

describe("An answer of an edge over HTTP", () => {
  test.each([
    [301, { location: "/there" }],
    [302, {}],
    [401, {}],
    [403, {}],
    [503, { "retry-after": "7" }],
  ])("with %d %j has the hint and the wait of the same answer to the upgrade", (status, headers) => {
    const { hint, retry, retryAfterMs } = unreachable("wss://relay.example/ws", { status, headers });
    expect(noRelayAt("https://relay.example", { status, headers })).toMatchObject({ hint, retry, retryAfterMs });
  });

  test("that redirects names where to, and one with another status has no hint of its own", () => {
    const moved = noRelayAt("https://relay.example", { status: 301, headers: { location: "/there" } });
    expect(moved.message).toContain("https://relay.example/there");
    for (const status of [200, 404]) {
      const { hint, message } = noRelayAt("https://relay.example", { status, headers: {} });
      expect([hint, message]).toEqual([undefined, expect.stringContaining(String(status))]);
    }
  });
});

test("Nothing was sent where no connection came about; one that broke, or an answer that is no HTTP, leaves it open", () => {
  for (const code of ["ECONNREFUSED", "ENOTFOUND", "CERT_HAS_EXPIRED"]) expect(wasNeverSent({ code })).toBe(true);
  for (const code of ["ECONNRESET", "ETIMEDOUT", "HPE_INVALID_CONSTANT", undefined])
    expect(wasNeverSent({ code })).toBe(false);
  const networkError = { why: "", hint: "", retry: "fix" } as const;
  for (const wasSent of [true, false]) expect(wasNeverSent({ networkError, wasSent })).toBe(!wasSent);
});

describe("Why no websocket was opened is told as it is", () => {
  let server: Server;
  afterEach(() => void server.close());

  const reasonAt = async (protocol: string, listening: Server) => (await errorAt(protocol, listening)).message;

  async function errorAt(protocol: string, listening: Server): Promise<RelayError> {
    server = listening;
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const url = `${protocol}://127.0.0.1:${port}/ws`;
    const { promise, resolve } = Promise.withResolvers<RelayError>();
    const socket = new Socket(url, false, {
      frame: () => {},
      closed: (_, failure) => resolve(unreachable(url, failure)),
    });
    socket.open();
    return await promise;
  }

  test("of a port that speaks plain http", async () => {
    expect(await reasonAt("wss", createServer())).toContain("does not speak TLS");
  });

  test("of a server that has older versions of TLS alone", async () => {
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    expect(await reasonAt("wss", createTlsServer({ ...SELF_SIGNED, ...old }))).toContain("no version of TLS");
  });

  test.each([
    ["a header without a colon", "HTTP/1.1 503 No\r\nno header\r\n\r\n"],
    ["a space in the name of a header", "HTTP/1.1 503 No\r\na b: c\r\n\r\n"],
    ["a control character", "HTTP/1.1 503 No\r\na: \x01\r\n\r\n"],
    ["a header in two lines", "HTTP/1.1 503 No\r\na: b\r\n c\r\n\r\n"],
    ["ends of lines without CR", "HTTP/1.1 503 No\na: b\n\n"],
    ["two framings", "HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n"],
    ["two lengths", "HTTP/1.1 503 No\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n"],
  ])("of an answer of HTTP with %s, which ends no start", async (_, answer) => {
    const edge = createTcpServer((socket) => void socket.on("error", () => {}).end(answer));
    expect(await errorAt("ws", edge)).toMatchObject({ retry: "later", message: expect.stringContaining("HPE_") });
  });

  test.each([
    ["no header", ""],
    ["no accept", "upgrade: websocket\r\nconnection: upgrade\r\n"],
    ["a wrong accept", "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n"],
    ["another protocol", "upgrade: other\r\nconnection: upgrade\r\n"],
  ])("of a 101 with %s, which is a refused upgrade", async (_, headers) => {
    const answer = `HTTP/1.1 101 Any\r\n${headers}\r\n`;
    const error = await errorAt(
      "ws",
      createTcpServer((socket) => void socket.on("error", () => {}).end(answer)),
    );
    expect([isRefusedUpgrade(error), error.retry]).toEqual([true, "fix"]);
    expect(error.message).toContain("101, without the headers of a websocket");
  });

  test("of a port that speaks something else", async () => {
    const other = createTcpServer((socket) => void socket.on("error", () => {}).end("SSH-2.0-any\r\n"));
    expect(await reasonAt("ws", other)).toContain("does not speak HTTP");
  });
});
