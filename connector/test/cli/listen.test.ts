import { stat } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { END, LAST_OUTPUT_MS, runForDelivery, runProgram } from "../../src/cli/exec.ts";
import type { Io, Reporter } from "../../src/cli/io.ts";
import { RelayError } from "../../src/errors.ts";
import { FIRST_START } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, untilState } from "../kit.ts";
import { setTime, Waits } from "../times.ts";
import { BOB, CommandLine, nowhere } from "./shell.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

afterEach(() => {
  jest.restoreAllMocks();
});

const alice = () => line.stage.online("alice", line.url);

describe("relay listen", () => {
  test("prints each delivery as one line of JSON, and all else on stderr, without a colour", async () => {
    const listener = line.begin(["listen", "--key", line.keyFile("bob-hmac")]);
    await listener.wrote(BOB);
    const sender = await alice();
    await sender.send(BOB, { n: 1 });
    await listener.prints(1);
    expect(listener.lines).toEqual([
      {
        event: "delivery",
        envelope: expect.objectContaining({
          from: "agent://alice",
          to: BOB,
          payload: { n: 1 },
          sig: expect.any(String),
        }),
        verified: "unverified",
        sealed: false,
        received_at_iso: expect.stringMatching(/^\d{4}-.*Z$/),
      },
    ]);
    expect(listener.stderr.trim().split("\n")).toHaveLength(1);
    expect(listener.stderr).toContain(`${line.url.replace("http", "ws")}/ws`);
    expect(listener.stderr).not.toContain("\u001b");
  });

  test("says in one line why it reaches no relay", async () => {
    const url = await nowhere();
    const listener = line.begin(["listen", "--key", line.keyFile("bob-hmac"), "--url", url]);
    await listener.wrote(url);
    expect(listener.stderr.trim().split("\n")).toHaveLength(1);
  });

  test("says once what the relay has against its key, while that may pass", async () => {
    await line.run(["keygen", "--agent", "agent://stranger"]);
    const listener = line.begin(["listen", "--json", "--key", line.file("stranger.json")]);
    await listener.reported("reconnecting");
    const [problem, reconnecting] = listener.reports;
    expect([problem, reconnecting]).toMatchObject([{ event: "problem", code: "unknown_key" }, { code: "unknown_key" }]);
    const { message } = new RelayError("unknown_key");
    expect([problem.message, reconnecting.message].map((text) => text.includes(message))).toEqual([true, false]);
  });

  test("ends the agent's connection elsewhere with --take-over alone", async () => {
    const other = await line.stage.online("bob-hmac", line.url);
    const refused = line.begin(["listen", "--json", "--key", line.keyFile("bob-hmac")]);
    expect(await refused.end()).toBe(6);
    expect(refused.reports).toMatchObject([{ event: "error", code: "superseded_elsewhere", retry: "fix" }]);
    expect(other.state.status).toBe("online");
    await line.listen("bob-hmac", "--take-over");
    await untilState(other, "closed");
    expect(other.state).toMatchObject({ error: { code: "superseded" } });
  });

  test("goes on for as long as something else answers in the relay's place", async () => {
    setTime(FIRST_START, "refusedUpgradeMs", 0);
    const proxy = await line.stage.proxy(line.url);
    proxy.refusesWith = 403;
    const listener = line.begin(["listen", "--json", "--key", line.keyFile("bob-hmac"), "--url", proxy.url]);
    await until("a refusal was told", () => listener.reports.some(({ message }) => message?.includes("403")));
    proxy.refusesWith = undefined;
    await until("it is online", () => listener.reports.some(({ event }) => event === "online"));
  });

  test("neither prints nor runs a program for what a relay kept for an hour, unless --max-age lets it", async () => {
    const proxy = await line.stage.proxy(line.url);
    proxy.toAgent = (frame) =>
      frame.frame === "deliver"
        ? { ...frame, envelope: { ...frame.envelope, ts: frame.envelope.ts - 3_600_000 } }
        : frame;
    const options = ["--url", proxy.url, "--exec", "echo ran >> aged"];
    const strict = await line.listen("bob-hmac", ...options);
    const sender = await alice();
    await sender.send(BOB, {});
    await strict.reported("problem");
    expect(strict.reports.at(-1)).toMatchObject({ code: "stale_delivery" });
    expect([strict.stdout, await line.text("aged")]).toEqual(["", ""]);
    await strict.stop();

    const patient = await line.listen("bob-hmac", ...options, "--max-age", "0");
    await sender.send(BOB, {});
    await until("the program ran", async () => (await line.text("aged")) !== "");
    expect(patient.lines).toHaveLength(1);
    expect(await line.run(["listen", "--key", line.keyFile("bob-hmac"), "--max-age", "soon"])).toMatchObject({
      code: 2,
    });
  });

  test("ends with 6 where another process of this user has its agent, and names it", async () => {
    await line.listen("bob-hmac");
    const { code, stderr } = await line.run(["listen", "--json", "--key", line.keyFile("bob-hmac")]);
    expect([code, jsonLines(stderr).at(-1)]).toMatchObject([
      6,
      { code: "superseded_elsewhere", message: expect.stringContaining(`process ${process.pid} `) },
    ]);
  });

  test("ends with 6 when another connection takes its agent over, and with 7 when its key is refused", async () => {
    const listener = await line.listen("bob-hmac");
    await line.stage.online("bob-hmac", line.url, { takeOver: true });
    expect(await listener.end()).toBe(6);
    expect(listener.reports[0]).toMatchObject({ event: "online", agent_id: BOB });
    expect(listener.stderr).not.toContain("Outcome");
    expect(listener.reports.at(-1)).toMatchObject({ event: "error", code: "superseded" });

    const key = await line.json("bob-hmac.json");
    const env = { RELAY_AGENT: "agent://alice", RELAY_KEY_ID: key.key_id, RELAY_SECRET: key.secret };
    const { code, stderr } = await line.run(["listen", "--json"], { env });
    expect(code).toBe(7);
    expect(jsonLines(stderr).at(-1)).toMatchObject({ event: "error", code: "key_not_allowed" });
    expect(stderr).not.toContain(key.secret);
  });
});

describe("relay listen --stdin", () => {
  test("is an agent for a program in any language: control requests in, answers and deliveries out", async () => {
    const listener = await line.listen("bob-hmac", "--stdin");
    const peer = await alice();
    const ask = (request: object) => listener.stdin.write(`${JSON.stringify(request)}\n`);
    ask({ to: "agent://alice", payload: { n: 1 }, ref: "first" });
    await listener.prints(1);
    expect(listener.lines).toMatchObject([
      {
        event: "accepted",
        ref: "first",
        sealed: false,
        target_delivery: { status: "online", can_deliver_realtime: true },
      },
    ]);
    expect((await next(peer)).payload).toEqual({ n: 1 });

    const { sessionId } = await peer.requestSession(BOB, { purpose: "talk" });
    await listener.prints(2);
    expect(listener.lines[1]).toMatchObject({ event: "delivery", session_id: sessionId });
    ask({ to: "agent://alice", approve: sessionId });
    await listener.prints(3);
    expect(listener.lines[2]).toMatchObject({ event: "accepted", ref: 2, session_status: "approved" });

    listener.stdin.write("no json\n");
    ask({ to: "agent://alice", payload: {}, approve: "both" });
    ask({ to: "agent://ALICE", payload: {} });
    await listener.prints(6);
    expect(
      listener.lines
        .slice(3)
        .map(({ event, ref, code }) => [event, ref, code])
        .sort(),
    ).toEqual([
      ["refused", 3, "usage"],
      ["refused", 4, "usage"],
      ["refused", 5, "invalid_envelope"],
    ]);
    listener.stdin.end();
    expect(await listener.end()).toBe(0);
  });

  test("ends with its input only when every request is answered", async () => {
    const requests = Array.from({ length: 300 }, (_, n) => `${JSON.stringify({ to: BOB, payload: { n } })}\n`).join("");
    const { code, stdout } = await line.run(["listen", "--stdin", "--key", line.keyFile("bob-hmac")], {
      stdin: requests,
    });
    const answers = jsonLines(stdout).filter(({ event }) => event === "accepted");
    expect(answers.map(({ ref }) => ref)).toEqual(Array.from({ length: 300 }, (_, n) => n + 1));
    expect(code).toBe(0);
  });
});

const text = (file: string) => line.text(file);
const io = { env: process.env, stderr: new PassThrough(), signal: new AbortController().signal } as unknown as Io;

describe("relay listen --exec", () => {
  const HOSTILE = "$(touch pwned) `touch pwned` \"; touch pwned; ' && touch pwned \n touch pwned \u009b31m";

  test("gives each delivery to a program, in order, and nothing of it to the shell", async () => {
    const program = 'cat >> got; echo "$RELAY_FROM $RELAY_TYPE $RELAY_VERIFIED $RELAY_AGENT" >> said';
    const listener = await line.listen("bob-hmac", "--exec", program);
    const sender = await alice();
    for (const n of [1, 2, 3]) await sender.send(BOB, { n, message: HOSTILE });
    await until("three programs ran", async () => (await text("said")).split("\n").length === 4);
    const got = jsonLines(await text("got"));
    expect(got.map(({ payload }) => payload)).toEqual([1, 2, 3].map((n) => ({ n, message: HOSTILE })));
    expect(await text("said")).toBe(`agent://alice message.send unverified ${BOB}\n`.repeat(3));
    await expect(stat(join(line.folder, "pwned"))).rejects.toThrow("ENOENT");
    expect(listener.lines.map(({ envelope }) => envelope)).toEqual(got);
    expect(listener.stdout).not.toContain("\u009b");
  });

  test("says which program failed, and goes on", async () => {
    const listener = await line.listen("bob-hmac", "--exec", "exit 3");
    const sender = await alice();
    await sender.send(BOB, {});
    await sender.send(BOB, {});
    await listener.reported("exec_failed", 2);
  });

  test("keeps the secrets of its own environment from the program", async () => {
    const { key_id, secret } = JSON.parse(await text("bob-hmac.json"));
    const env = { RELAY_AGENT: BOB, RELAY_KEY_ID: key_id, RELAY_SECRET: secret, RELAY_API_KEY: "rk_none" };
    const listener = line.begin(["listen", "--json", "--exec", "env > environment"], env);
    await listener.reported("online");
    await (await alice()).send(BOB, {});
    await until("the program ran", async () => (await text("environment")).includes("RELAY_FROM"));
    expect(await text("environment")).not.toMatch(/RELAY_SECRET|RELAY_API_KEY/);
    expect(await text("environment")).not.toContain(secret);
  });

  test("ends the program, and what it started, when it is stopped", async () => {
    const listener = await line.listen("bob-hmac", "--exec", "sh -c 'echo $$ > pid; sleep 600; true'; true");
    await (await alice()).send(BOB, {});
    await until("the program runs", async () => (await text("pid")) !== "");
    expect(await listener.stop()).toBe(0);
    const pid = Number(await text("pid"));
    await until("the program is gone", () => !lives(pid));
  });

  test("ends at once for others, and in the end for what it started, when its program heeds no signal", async () => {
    const program = `trap '' TERM; sh -c 'trap "" TERM; echo $$ > stubborn; while [ -d ${line.folder} ]; do sleep 1; done'`;
    const listener = await line.listen("bob-hmac", "--exec", program);
    await (await alice()).send(BOB, {});
    await until("the program runs", async () => (await text("stubborn")) !== "");
    const pid = Number(await text("stubborn"));
    const stopped = listener.stop();
    // It goes over a connection of its own, while the former process still waits for its program.
    const sent = await line.run(["send", "--json", "--key", line.keyFile("bob-hmac"), "agent://alice", '{"n":1}']);
    expect([sent.code, jsonLines(sent.stdout)[0]?.via, lives(pid)]).toEqual([0, "connection", true]);
    setTime(END, "withinMs", 0);
    expect(await stopped).toBe(0);
    await until("the program is gone", () => !lives(pid));
  });

  test("goes on when a program has ended and left something behind that holds its output", async () => {
    await line.listen("bob-hmac", "--reply", "--exec", `(${line.waitFor("go")}) & echo hi`);
    const sender = await alice();
    const waits = new Waits();
    for (const n of [1, 2]) {
      await sender.send(BOB, { n });
      await waits.end(LAST_OUTPUT_MS);
      expect((await next(sender)).payload).toEqual({ message: "hi" });
    }
    await line.write("go", "");
  });

  test("starts no program once it is stopped, and says for how many deliveries", async () => {
    const listener = await line.listen("bob-hmac", "--exec", "echo x >> ran; cat; exec sleep 600");
    const sender = await alice();
    for (const n of [1, 2, 3]) await sender.send(BOB, { n });
    await until("the first program runs", async () => (await text("ran")) !== "");
    // What comes after the third has come after it: the two wait.
    await line.run(["send", "--key", line.keyFile("bob-hmac"), "agent://alice", "{}"]);
    await next(sender);
    expect(await listener.stop()).toBe(0);
    expect(listener.lines.map(({ envelope }) => envelope.payload.n)).toEqual([1, 2, 3]);
    expect(listener.reports.at(-1)).toMatchObject({ event: "exec_skipped", deliveries: 2 });
    expect(await text("ran")).toBe("x\n");
  });

  test("lets go of the output of what a program left behind, which goes on where nobody wants the output", async () => {
    const receiver = await line.stage.online("bob-hmac", line.url);
    await (await alice()).send(BOB, {});
    const delivery = await next(receiver);
    const pipes = () => process.getActiveResourcesInfo().filter((name) => name === "PipeWrap").length;
    const before = pipes();
    const left = `(${line.waitFor("go-on")}; echo; echo on > ${line.file("went")}) & true`;
    const run = (command: string, keepsOutput: boolean) =>
      runProgram(delivery, { command, variables: {}, keepsOutput }, io);
    expect(await run(`${left}; echo hi`, true)).toEqual({ exitCode: 0, printed: "hi\n" });
    expect(await run(left, false)).toEqual({ exitCode: 0, printed: "" });
    await until("their pipes are closed", () => pipes() === before);
    await line.write("go-on", "");
    await until("it went on", async () => (await text("went")) === "on\n");
  });

  test("says which program keeps the others waiting", async () => {
    const said: string[] = [];
    const reporter = { report: (event: string) => void said.push(event) } as unknown as Reporter;
    const receiver = await line.stage.online("bob-hmac", line.url);
    await (await alice()).send(BOB, {});
    const options = { command: line.waitFor("told"), replies: false, variables: {}, reporter, slowAfterMs: 1 };
    const running = runForDelivery(await next(receiver), options, io);
    await until("it is said", () => said.length > 0);
    await line.write("told", "");
    await running;
    expect(said).toEqual(["exec_slow"]);
  });

  test("says why --reply sends nothing back on a session request", async () => {
    const listener = await line.listen("bob-hmac", "--reply", "--exec", "echo hi");
    await (await alice()).requestSession(BOB, { purpose: "talk" });
    await listener.reported("exec_failed");
    expect(listener.reports.at(-1)?.message).toContain("relay approve");
  });

  test("sends back with --reply what the program prints, an object as it is and a text as a message", async () => {
    await line.listen(
      "bob-hmac",
      "--reply",
      "--exec",
      'read x; case "$x" in *object*) echo "{\\"a\\":1}";; *) echo hi;; esac',
    );
    const sender = await alice();
    await sender.send(BOB, { want: "object" }, { taskId: "task-1" });
    const reply = await next(sender);
    expect(reply).toMatchObject({ type: "message.reply", payload: { a: 1 }, envelope: { task_id: "task-1" } });
    await sender.send(BOB, { want: "text" });
    expect((await next(sender)).payload).toEqual({ message: "hi" });
  });

  test("says so when a reply reached nobody", async () => {
    const listener = await line.listen("bob-hmac", "--reply", "--exec", `${line.waitFor("gone")}; echo hi`);
    const sender = await alice();
    await sender.send(BOB, {});
    await sender.close();
    const isOnline = async () => (await line.run(["status", "alice"])).stdout.includes(" online ");
    await until("the relay knows it", async () => !(await isOnline()));
    await line.write("gone", "");
    await listener.reported("reply_not_delivered");
  });

  test("never replies to a reply, so that two who both reply come to an end", async () => {
    await line.listen("bob-hmac", "--reply", "--exec", "echo hi; echo x >> calls");
    const sender = await alice();
    await sender.send(BOB, {}, { type: "message.reply" });
    const { envelopeId } = await sender.send(BOB, {});
    expect(await next(sender)).toMatchObject({ payload: { message: "hi" }, envelope: { task_id: envelopeId } });
    expect(await text("calls")).toBe("x\nx\n");
  });
});

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
