import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "@jest/globals";
import { shared } from "../fixture.ts";
import { McpStage } from "./kit.ts";

const STRANGERS = fileURLToPath(new URL("strangers.ts", import.meta.url));
const CALLS = 20;
/** Wide, as is the p95: a call takes a few milliseconds. */
const ANSWERED_WITHIN_MS = 1000;
const DRIP_MS = 100;
const MEBIBYTE = "x".repeat(2 ** 20);
/** Far more than the sockets of a connection hold. */
const MANY_BYTES = 2 ** 26;
const HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";

const stage = shared(new McpStage("alice"));
let strangers: ChildProcess | undefined;
afterEach(async () => {
  if (strangers === undefined) return;
  const ended = once(strangers, "close");
  strangers.kill("SIGKILL");
  await ended;
  strangers = undefined;
});

test("a tool call of its user is answered within a second while strangers hold 64 connections: silent, with endless headers, huge bodies and wrong tokens", async () => {
  const server = await stage.httpProcess("alice");
  strangers = spawn(process.execPath, [STRANGERS, server.url], { stdio: ["ignore", "pipe", "inherit"] });
  await once(strangers.stdout as NodeJS.ReadableStream, "data");

  const alice = await stage.httpHost(server);
  await alice.untilConnection("online");
  const times: number[] = [];
  for (let n = 0; n < CALLS; n += 1) {
    const askedAt = performance.now();
    await alice.call("my_status");
    times.push(performance.now() - askedAt);
  }
  const p95 = times.sort((a, b) => a - b)[CALLS * 0.95 - 1];
  expect(p95).toBeLessThan(ANSWERED_WITHIN_MS);
  expect(strangers.exitCode).toBeNull();
});

test("a stranger's body is read no further than one may be long", async () => {
  const { hostname, port } = new URL((await stage.httpProcess("alice")).url);
  const stranger = connect(Number(port), hostname).on("error", () => {});
  let heard = "";
  stranger.on("data", (chunk) => (heard += chunk));
  const closed = new Promise((resolve) => stranger.once("close", resolve));
  const more = () => {
    while (stranger.write(MEBIBYTE));
  };
  stranger.on("drain", more).write(`${HEAD}Content-Length: ${2 ** 40}\r\n\r\n`);
  more();
  await closed;
  expect(heard).toMatch(/^HTTP\/1.1 401 /);
  expect(stranger.bytesWritten).toBeLessThan(MANY_BYTES);
});

test("strangers who send nothing, or headers without an end, lose their connections, and later those of a body without an end", async () => {
  const { hostname, port } = new URL((await stage.httpProcess("alice")).url);
  const lost: string[] = [];
  const slow = [
    { what: "body", first: `${HEAD}Content-Length: 100000\r\n\r\n`, more: "x" },
    { what: "nothing", first: "", more: "" },
    { what: "headers", first: HEAD, more: "X-More: 1\r\n" },
  ].map(async ({ what, first, more }) => {
    const stranger = connect(Number(port), hostname).resume();
    stranger.write(first);
    const drip = setInterval(() => stranger.write(more), DRIP_MS);
    // What it drips on may meet a closed socket: then a reset ends it.
    await new Promise((closed) => stranger.on("error", () => {}).once("close", closed));
    clearInterval(drip);
    lost.push(what);
  });
  await Promise.all(slow);
  expect(lost).toEqual([expect.any(String), expect.any(String), "body"]);
}, 30_000);
