import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import { describe, expect, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { rowsBetween } from "../../../test/support/documents.ts";
import { COMMON, nearest } from "../../src/cli/arguments.ts";
import { Repeats, reportConnection } from "../../src/cli/connection-reports.ts";
import { EXIT, exitCodeOf, Failure, hintOf } from "../../src/cli/failure.ts";
import { Reporter } from "../../src/cli/io.ts";
import { COMMANDS, run } from "../../src/cli/run.ts";
import { CONTROL_MEMBERS, serveRequestLines } from "../../src/cli/sharing/requests.ts";
import type { Connector } from "../../src/connector.ts";
import { Emitter } from "../../src/emitter.ts";
import { RelayError } from "../../src/errors.ts";
import { hintOf as hintOfTool } from "../../src/mcp/tool.ts";
import type { ConnectorState } from "../../src/types.ts";
import { sharedByAll } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { Shell } from "./shell.ts";

/** What commands write: of what others said, and of themselves. */

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

test("Of one outage text says that the connection was lost and why no other came about, once each, and JSON each attempt", () => {
  const [asText, asJson] = [false, true].map((json) => {
    const emitter = new Emitter();
    const stderr = new PassThrough();
    const connector = { agent: "agent://alice", state: {}, on: emitter.on.bind(emitter) } as unknown as Connector;
    reportConnection(connector, "ws://relay", new Reporter(stderr, json), json);
    const tell = (state: object) =>
      emitter.emit("state", { retryInMs: 1, closeCode: 1006, ...state } as ConnectorState);
    for (const _ of ["one outage", "another"]) {
      tell({ status: "online" });
      tell({ status: "reconnecting", reason: "lost" });
      for (let n = 0; n < 4; n += 1) {
        tell({ status: "reconnecting", reason: "unreachable" });
        emitter.emit("error", new RelayError("unreachable"));
      }
    }
    return String(stderr.read()).trimEnd().split("\n");
  });
  expect(asText).toHaveLength(2 * 3);
  expect(asJson).toHaveLength(2 * (1 + 1 + 2 * 4));
});

test("The text of an outage says when the next attempt is if an answer asked to wait", () => {
  const said = [undefined, 9000].map((retryAfterMs) => {
    const emitter = new Emitter();
    const stderr = new PassThrough();
    const state = { status: "reconnecting", retryInMs: 10_500 };
    const connector = { agent: "agent://alice", state, on: emitter.on.bind(emitter) } as unknown as Connector;
    reportConnection(connector, "ws://relay", new Reporter(stderr, false), false);
    emitter.emit("error", new RelayError("unreachable", { retryAfterMs }));
    return /\d+ s/.exec(String(stderr.read()))?.[0];
  });
  expect(said).toEqual([undefined, "11 s"]);
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

async function* lineOf(request: object) {
  yield JSON.stringify(request);
}

test.each(["a_later_code", "constructor", "__proto__", "toString"])(
  "A relay's code %s is a word like any other",
  async (code) => {
    const failure = new Failure(code, "No.", "Ask another time.");
    expect([exitCodeOf(code), hintOf(failure), hintOfTool(failure)]).toEqual([
      EXIT.refused,
      failure.hint,
      failure.hint,
    ]);
    const written: string[] = [];
    const write = async (line: string) => void written.push(line);
    const bounded = () => Promise.reject(failure);
    await serveRequestLines(lineOf({ to: "agent://bob", payload: {} }), write, {} as Connector, { bounded });
    expect(JSON.parse(written.join())).toMatchObject({ event: "refused", code, hint: failure.hint });
  },
);

/** Escapes in both their forms, a bell, marks of direction, ends of lines; what nobody sees: no width, a tag. */
const ACTING = [
  ...["\u001b", "\u009b", "\u0007", "\u061c", "\u200e", "\u200f", "\u202e", "\u2066", "\u2028", "\r"],
  ...["\u200b", "\u2060", "\ufeff", "\u{e0041}"],
];
const EVIL = `evil${ACTING.join("")}\nforged`;
const ALICE = "agent://alice";
const KEY = ["--key", "alice.json", "--url"];
/** Its check-online is none of a relay. */
const ALL_THE_SAME = ["--take-over", ...KEY];

/** What each command is run with, that shows texts of others. `URL`: the address of a relay that writes EVIL wherever it can. */
const SHOWING: Readonly<Record<string, readonly string[]>> = {
  check: [...KEY, "URL"],
  listen: [...ALL_THE_SAME, "URL"],
  send: ["agent://bob", "{}", ...ALL_THE_SAME, "URL"],
  ask: ["agent://bob", "{}", ...ALL_THE_SAME, "URL"],
  request: ["agent://bob", "--purpose", "p", "--json", ...ALL_THE_SAME, "URL"],
  approve: ["ses_1", ...ALL_THE_SAME, "URL"],
  reject: ["ses_1", ...ALL_THE_SAME, "URL"],
  init: ["weather", "--url", "URL"],
  inspect: ["evil.credential"],
  status: ["agent://bob", "--url", "URL"],
};
/** These show texts of the one who runs them, and what Reporter says: `mcp` as `listen`. */
const OTHERS = ["keygen", "issuer", "issue", "credential", "receipt", "verify", "mcp", "completion"];

/** Written as others would. */
class EvilRelay extends Shell {
  connectorVersion = `9.9.9${EVIL}`;
  readonly #server = createServer((request, response) => {
    const path = request.url ?? "";
    const answer = Object.entries(ANSWERS).find(([start]) => path.startsWith(start))?.[1];
    response.writeHead(answer === undefined ? 400 : 200).end(JSON.stringify(answer ?? REFUSAL));
  });

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  override async start(): Promise<void> {
    await super.start();
    const { stdout } = await this.run(["keygen", "--agent", ALICE, "--out", "alice.json"]);
    await this.write("evil.credential", evilCredential(JSON.parse(stdout).public_key));
    new WebSocketServer({ server: this.#server }).on("connection", (socket) => {
      const tell = (frame: object) => socket.send(JSON.stringify(frame));
      tell({ frame: "hello", server_time: Date.now(), limits: {}, connector_version: this.connectorVersion });
      socket.on("message", (text) => {
        const envelope = JSON.parse(String(text));
        tell({ ...(envelope.type === "message.send" ? ERROR : ACK), envelope_id: envelope.id });
        if (envelope.type === "agent.register") for (const frame of UNASKED) tell(frame);
      });
    });
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
  }

  override async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await super.stop();
  }
}

const REFUSAL = {
  ok: false,
  code: EVIL,
  retry: "fix",
  title: EVIL,
  detail: EVIL,
  hint: EVIL,
  errors: [{ field: EVIL, message: EVIL }],
};
const ANSWERS: Readonly<Record<string, object>> = {
  "/health": { ok: true },
  "/ready": {},
  "/api/onboarding/check-online": { ok: true, agent_id: EVIL, status: EVIL, can_deliver_realtime: false },
  "/api/onboarding/online-agents": { ok: true, online_agents: EVIL, stale_agents: EVIL, offline_agents: EVIL },
  "/sessions/": { ok: true, requester: "agent://eve", target: EVIL, status: "approved" },
};
const target_delivery = { status: EVIL, can_deliver_realtime: false };
const ACK = { frame: "ack", accepted: true, target_delivery, session_id: EVIL, session_status: EVIL };
const ERROR = { frame: "error", code: EVIL, message: EVIL, hint: EVIL };
const NOW_ISO = new Date().toISOString();
const times = { created_at_iso: NOW_ISO, decided_at_iso: NOW_ISO, expires_at_iso: NOW_ISO };
const session = {
  ...times,
  session_id: `ses_${"0".repeat(26)}`,
  status: "approved",
  requester: "agent://eve",
  target: "agent://eve",
};
const SENT = { id: "e-1", type: "message.send", from: "agent://eve", to: ALICE, key_id: "k", sig: "A".repeat(86) };
const UNASKED = [
  { frame: "notice", notice: "pending_sessions", total: 1, sessions: [session] },
  { frame: "notice", notice: "decided_sessions", sessions: [session] },
  { frame: "notice", notice: "released", reason: EVIL },
  ERROR,
  { frame: "deliver", session_id: EVIL, envelope: { ...SENT, ts: Date.now(), payload: { [EVIL]: EVIL } } },
];

function evilCredential(x: string): string {
  const [iat, exp] = [1, 86_400 * 30].map((seconds) => Math.floor(Date.now() / 1000) + seconds);
  const claims = { iss: "acme", sub: ALICE, cnf: { jwk: { kty: "OKP", crv: "Ed25519", x } }, iat, exp, aud: [EVIL] };
  const header = { alg: "Ed25519", typ: "relay-credential+jwt", kid: EVIL };
  const encoded = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  return [...encoded, "A".repeat(86)].join(".");
}

const relay = sharedByAll(new EvilRelay());

/** What a command writes to a terminal without colours, until it ends, or has said all that the relay told it unasked. */
async function writtenBy(name: string, args: readonly string[]): Promise<string> {
  const stop = new AbortController();
  let written = "";
  const write = (chunk: unknown, _: unknown, done: () => void) => {
    written += String(chunk);
    if (name === "listen" && SAID_BY_LISTEN.every((text) => written.includes(text))) stop.abort();
    done();
  };
  const terminal = () => Object.assign(new Writable({ write }), { isTTY: true, getColorDepth: () => 1 });
  const io = { env: {}, stdin: Readable.from([]), stdout: terminal(), stderr: terminal(), signal: stop.signal };
  await run([name, ...args.map((word) => (word === "URL" ? relay.url : word))], io);
  return written;
}
const SAID_BY_LISTEN = ["for your decision", "Decided", "let the agent go", "agent://eve"];

test.each(Object.entries(SHOWING))(
  "Nothing that others wrote acts on a terminal in what relay %s shows",
  async (name, args) => {
    const written = await writtenBy(name, args);
    expect(written).toContain("evil");
    expect(ACTING.filter((char) => written.includes(char))).toEqual([]);
    expect(written).not.toMatch(/^\\u009b/m);
  },
);

test.each(["check", "listen", "send", "ask", "approve"])(
  "That a relay hands out a newer connector is told once by relay %s",
  async (name) => {
    relay.connectorVersion = "99.0.0-b1";
    const written = await writtenBy(name, SHOWING[name] as string[]);
    relay.connectorVersion = `9.9.9${EVIL}`;
    expect(written.split("\n").filter((line) => line.includes("99.0.0-b1"))).toHaveLength(1);
  },
);

test("All commands are tried, or show no text of others", () => {
  expect([...Object.keys(SHOWING), ...OTHERS].sort()).toEqual(COMMANDS.map(({ name }) => name).sort());
});

const REFERENCE = await readFile(new URL("../../CLI.md", import.meta.url), "utf8");

/** What CLI.md says of a command. */
function sectionOf(name: string): string {
  return REFERENCE.split(/^## /m).find((section) => section.startsWith(`${name}\n`)) ?? "";
}

describe("relay", () => {
  test("lists every command, and has an exit code 2 for a command line that is invalid", async () => {
    const { code, stdout } = await relay.run(["--help"]);
    expect(code).toBe(0);
    for (const { name, summary } of COMMANDS) expect(stdout).toMatch(new RegExp(`^ +${name} +${summary}$`, "m"));
    expect(await relay.run([])).toEqual({ code: 0, stdout, stderr: "" });
    expect(await relay.run(["fly"])).toMatchObject({ code: 2, stdout: "" });
    for (const words of [
      ["fly"],
      ["send", "--fly"],
      ["listen", "word"],
      ["listen", "--reply"],
      ["request", "agent://bob"],
    ]) {
      const { code, stdout, stderr } = await relay.run([...words, "--json"]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(jsonLines(stderr)).toMatchObject([{ event: "error", code: "usage" }]);
    }
  });

  test.each(COMMANDS)("$name has a help page with each option, which leads to its section of CLI.md", async (entry) => {
    const { name } = entry;
    const { code, stdout, stderr } = await relay.run([name, "--help"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(new RegExp(`^Usage: relay ${name} `));
    const options = Object.keys({ ...(await entry.load()).options, ...COMMON });
    for (const option of options) expect(stdout).toMatch(new RegExp(`^  --${option} `, "m"));
    const [, file = "", section] = /^Reference: (.+)#(.+)$/m.exec(stdout) ?? [];
    expect([await readFile(file, "utf8"), section]).toEqual([REFERENCE, name]);
    // It is in a package: without a clone of the repository, nobody can run its commands.
    expect(stdout + sectionOf(name)).not.toMatch(/\bnpm |\.local\b/);
  });

  test.each(COMMANDS)("$name has each option, and no other, in its section of CLI.md", async ({ name, load }) => {
    const cells = [...sectionOf(name).matchAll(/^\| ([^|]*--[^|]*) \|/gm)].map(([, cell]) => cell as string);
    const listed = cells.flatMap((cell) => [...cell.matchAll(/--([a-z-]+)/g)].map(([, option]) => option));
    const options = Object.keys({ ...(await load()).options, ...COMMON });
    expect(listed.sort()).toEqual(options.sort());
  });

  test("has the exit codes that CLI.md lists", () => {
    const listed = rowsBetween(REFERENCE, "exit codes").map(([code]) => Number(code));
    expect(listed).toEqual(Object.values(EXIT));
  });
});

async function hintFor(args: string[]): Promise<string> {
  const { code, stderr } = await relay.run([...args, "--json"]);
  expect(code).toBe(2);
  return jsonLines(stderr)[0].hint;
}

describe("A slip of the command line", () => {
  test("is answered with the command, or the option, that was probably meant", async () => {
    expect(await hintFor(["lisen"])).toContain("relay listen");
    expect(await hintFor(["sned"])).toContain("relay send");
    expect(await hintFor(["stauts"])).toContain("relay status");
    expect(await hintFor(["send", "--wait-onlin", "3"])).toContain("--wait-online");
  });

  test("is never guessed at from afar, nor repeated: it may be a secret", async () => {
    const secret = "hunter2hunter2";
    expect(nearest(secret, ["listen", "send"])).toBeUndefined();
    expect(await hintFor([secret])).not.toContain(secret);
    expect(nearest("xy", ["key", "url"])).toBeUndefined();
  });
});

test("CLI.md names every member that a control line may have", () => {
  for (const member of CONTROL_MEMBERS) expect(sectionOf("listen")).toContain(`"${member}"`);
});

test("A word that a command does not take is named, unless it may be a secret", async () => {
  const told = async (...words: string[]) => (await relay.run(words)).stderr;
  expect(await told("keygen", "agnet")).toContain("agnet");
  expect(await told("init", "one", "two")).toContain("two");
  expect(await told("keygen", "agent://carol")).toContain("--agent agent://carol");
  expect(await told("keygen", "k".repeat(32))).not.toContain("kkk");
});

describe("relay completion", () => {
  async function completed(...words: string[]): Promise<string[]> {
    const { stdout: script } = await relay.run(["completion", "bash"]);
    const asks = `${script}\nCOMP_WORDS=(relay ${words.join(" ")}) COMP_CWORD=${words.length}; _relay; echo "\${COMPREPLY[@]}"`;
    const { stdout } = await promisify(execFile)("bash", ["-c", asks], { cwd: relay.folder });
    return stdout.trim().split(" ");
  }

  test("makes bash complete commands, their options, and files", async () => {
    expect(await completed("se")).toEqual(["send"]);
    expect(await completed("listen", "--ta")).toEqual(["--take-over"]);
    expect(await completed("send", "--w")).toEqual(["--wait-online"]);
    await relay.write("bob.json", {});
    expect(await completed("send", "--key", "bo")).toEqual(["bob.json"]);
  });

  test.each(["zsh", "fish"])("knows every command and the options of %s, too", async (name) => {
    const { stdout } = await relay.run(["completion", name]);
    for (const word of ["keygen", "completion", "take-over"]) expect(stdout).toContain(word);
  });

  test("refuses another shell", async () => {
    expect((await relay.run(["completion", "csh"])).code).toBe(2);
  });
});
