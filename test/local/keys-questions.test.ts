import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { SigningKeyRecord } from "relay-protocol/contract/keys-file.ts";
import { WebSocketServer } from "ws";
import { parseCommandLine, waitOf } from "../../deploy/keys/command-line.ts";
import { NotInForceError, ofKey, ofNewApiKey, ofRevokedApiKey } from "../../deploy/keys/in-force.ts";
import { makeApiKey, makeEd25519Key } from "../../deploy/keys/make.ts";
import { runProgram } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Something that answers at the address of a relay. */

const RUN = fileURLToPath(new URL("../../deploy/keys/run.ts", import.meta.url));
const TERMS = { id: "alice-1", agents: ["agent://alice"], expiresAt: undefined };
const READY = { ok: true, service: "gateway", ready: true };
const HELLO = JSON.stringify({ frame: "hello" });
const refusal = (code: string) => JSON.stringify({ frame: "error", code });

/** What it answers over HTTP. */
let http: { status: number; body: unknown };
/** That were asked of it. */
let paths: (string | undefined)[];
/** The frames that it sends to each websocket; undefined where it has none. */
let frames: string[] | undefined;

const websockets = new WebSocketServer({ noServer: true });
let server: ReturnType<typeof createServer>;
let url: string;

beforeEach(async () => {
  paths = [];
  server = createServer((request, response) => {
    paths.push(request.url);
    response
      .writeHead(http.status, { "content-type": "application/json", location: "/elsewhere" })
      .end(JSON.stringify(http.body));
  });
  server.on("upgrade", (request, socket, head) => {
    // Whoever has read the answer may reset the connection.
    if (frames === undefined) socket.on("error", () => {}).end("HTTP/1.1 404 Not Found\r\n\r\n");
    else websockets.handleUpgrade(request, socket, head, greet);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  for (const client of websockets.clients) client.terminate();
  server.closeAllConnections();
  server.close();
});

/** It answers no close either. */
function greet(websocket: import("ws").WebSocket): void {
  for (const frame of frames ?? []) websocket.send(frame);
  websocket.pause();
}

describe("An API key that was made", () => {
  test.each<[number, unknown, boolean | undefined]>([
    [400, { code: "invalid_request" }, true],
    [401, { code: "invalid_api_key" }, false],
    [429, { code: "rate_limited" }, false],
    [503, { code: "not_ready" }, false],
    [404, { error: "no such route" }, undefined],
    [404, { code: "not_found" }, undefined],
    [200, null, undefined],
  ])("is accepted only where its request is found empty: %s %j", async (status, body, gateway) => {
    http = { status, body };
    const { record, apiKey } = makeApiKey(TERMS);
    expect(await ofNewApiKey(record, apiKey).ask?.({ url, waitMs: 1 })).toEqual({ gateway });
  });
});

test.each([302, 307])(
  "An API key is not sent where a redirect (%s) leads, and is not in force by it",
  async (status) => {
    http = { status, body: { code: "invalid_request" } };
    const { record, apiKey } = makeApiKey(TERMS);
    await expect(ofNewApiKey(record, apiKey).ask?.({ url, waitMs: 1 })).rejects.toThrow(NotInForceError);
    expect(paths).toEqual(["/v1/messages/send"]);
  },
);

describe("An API key that was revoked", () => {
  test.each<[number, unknown, boolean | undefined]>([
    [200, READY, true],
    [200, { ...READY, degraded: ["keys_file"] }, false],
    [503, READY, false],
    [503, { code: "not_ready", service: "gateway", ready: false }, false],
    [200, { ready: true }, undefined],
    [200, { ...READY, degraded: 1 }, undefined],
    [404, { error: "no such route" }, undefined],
  ])("is refused only where a gateway is ready and can read its keys file: %s %j", async (status, body, gateway) => {
    http = { status, body };
    expect(await ofRevokedApiKey("alice-1").ask?.({ url, waitMs: 1 })).toEqual({ gateway });
  });
});

describe("A signing key that was added", () => {
  const record: SigningKeyRecord = makeEd25519Key(TERMS).record;

  test.each<[unknown, string[] | undefined, boolean | undefined, boolean | undefined]>([
    [{ code: "bad_signature" }, [HELLO, refusal("bad_signature")], true, true],
    [{ code: "unknown_key" }, [HELLO, refusal("unknown_key")], false, false],
    [{ code: "not_ready" }, [HELLO], false, false],
    [{ error: "no such route" }, undefined, undefined, undefined],
    [{ code: "not_found" }, [HELLO, refusal("bad_signature")], undefined, true],
    [{ code: "bad_signature" }, undefined, true, undefined],
    [{ code: "bad_signature" }, ["hi there"], true, undefined],
    [{ code: "bad_signature" }, ["null"], true, undefined],
    [{ code: "bad_signature" }, [], true, undefined],
  ])("is shown by whichever of both answers: %j, %j", async (body, sent, gateway, connector) => {
    http = { status: 400, body };
    frames = sent;
    expect(await ofKey(record, "accept").ask?.({ url, waitMs: 1 })).toEqual({ gateway, connector });
  });
});

const problemOf = (act: () => unknown) => {
  try {
    return act();
  } catch (error) {
    return (error as Error).message;
  }
};

describe("The relay that is asked", () => {
  const relayOf = (url: string, RELAY_HTTP_URL?: string) => {
    const { url: base, websocketUrl } = waitOf(parseCommandLine(["list", "--url", url]).values, { RELAY_HTTP_URL });
    return [base, websocketUrl];
  };

  test.each([
    ["http://relay.test/", undefined, "http://relay.test", "ws://relay.test/ws"],
    ["https://relay.test/prefix", undefined, "https://relay.test/prefix", "wss://relay.test/prefix/ws"],
    ["ws://pod.test:8082", "http://gateway.test:8081/", "http://gateway.test:8081", "ws://pod.test:8082/ws"],
    ["ws://pod.test:8082/relay", "http://gateway.test:8081", "http://gateway.test:8081", "ws://pod.test:8082/relay"],
    ["http://pod.test:8082", "http://gateway.test:8081", "http://gateway.test:8081", "ws://pod.test:8082/ws"],
  ])("at %s, with RELAY_HTTP_URL %s, has HTTP at %s and its websocket at %s", (url, httpUrl, base, websocket) => {
    expect(relayOf(url, httpUrl)).toEqual([base, websocket]);
  });

  test("has an address of HTTP, and the refusal of a websocket's names RELAY_HTTP_URL", () => {
    expect(() => relayOf("ws://pod.test:8082/ws")).toThrow("RELAY_HTTP_URL");
    expect(() => relayOf("nowhere", "http://gateway.test")).toThrow("--url: The address must begin");
    expect(() => relayOf("ws://pod.test:8082/ws", "ws://gateway.test")).toThrow("RELAY_HTTP_URL must begin");
    expect(() => relayOf("ws://pod.test:8082/ws", "gateway.test")).toThrow("RELAY_HTTP_URL must begin");
  });

  test("has an address that both connectors take, or else an error that says what to write and not what was given", async () => {
    const path = new URL("../../connector-python/tests/addresses.json", import.meta.url);
    const { hosts, paths, refused } = JSON.parse(await readFile(path, "utf8"));
    for (const url of [...Object.keys(hosts), ...Object.keys(paths)]) relayOf(url, "http://gateway.test");
    for (const [told, urls] of Object.entries<string[]>(refused)) {
      for (const url of urls) expect([url, problemOf(() => relayOf(url))]).toEqual([url, `--url: ${told}`]);
    }
    for (const given of ["http://user:secret@gateway.test", "http://gateway.test?token=secret"]) {
      expect(problemOf(() => relayOf("http://pod.test", given))).toMatch(/^RELAY_HTTP_URL: (?!.*secret)/);
    }
  });
});

test("npm run keys ends, with the secret printed, although a websocket stays silent and answers no close", async () => {
  http = { status: 400, body: { code: "bad_signature" } };
  frames = [];
  await using folder = await temporaryFolder();
  const command = ["new", "--listed", "--agent", "agent://alice", "--wait", "1"];
  const place = ["--file", join(folder.path, "keys.json"), "--url", url];
  const { code, stdout, stderr } = await runProgram(process.execPath, [RUN, ...command, ...place]);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { agent_id: "agent://alice" }]);
  expect(stderr).toContain("no connector answers there");
});
