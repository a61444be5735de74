import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable, Writable } from "node:stream";
import { expect, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { COMMANDS } from "../../src/cli/commands/index.ts";
import { run } from "../../src/cli/run.ts";
import { sharedByAll } from "../fixture.ts";
import { Shell } from "./shell.ts";

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
      tell({ frame: "hello", server_time: Date.now(), limits: {}, connector_version: `9.9.9${EVIL}` });
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

test("All commands are tried, or show no text of others", () => {
  expect([...Object.keys(SHOWING), ...OTHERS].sort()).toEqual(COMMANDS.map(({ name }) => name).sort());
});
