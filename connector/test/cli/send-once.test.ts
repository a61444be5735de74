import { chmod, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, record } from "../kit.ts";
import { CommandLine, nowhere } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const BOB = "agent://bob-hmac";
const HELLO = '{"message":"Hello, Bob."}';

const as = (name: string) => ["--key", line.keyFile(name)];
const bob = () => line.stage.online("bob-hmac", line.url);

/** As if this address had asked check-online as often as it may, for so many ms. @returns what ends that at once. */
async function reachLimit(ms: number): Promise<() => Promise<unknown>> {
  const { client } = line.stage.relay.view();
  await line.run(["status", "agent://alice"]);
  const [limit] = (await client.keys("relay:{*}:limit:address:check_online:*")) as [string];
  await client.set(limit, 1_000_000, "PX", ms);
  return () => client.del(limit);
}

/** Runs a command line with `--json`, which must fail in this way, and say so in one line. @returns what stderr held. */
async function expectFailure(args: string[], exitCode: number, code: string, env = {}): Promise<string> {
  const { code: ended, stdout, stderr } = await line.run(args, { env });
  expect([ended, stdout]).toEqual([exitCode, ""]);
  const reports = jsonLines(stderr).filter(({ event }) => event !== "waiting");
  const [{ retry, ...error }, ...more] = reports as [Record<string, unknown>];
  const texts = { message: expect.any(String), hint: expect.any(String) };
  expect([error, more]).toEqual([{ event: "error", ...texts, code, outcome: "refused" }, []]);
  expect(["never", "fix", "later"]).toContain(retry);
  return stderr;
}

describe("relay send", () => {
  test("sends what its second word says, or what is piped in, and says that it was handed over", async () => {
    const receiver = await bob();
    const first = await line.run(["send", ...as("alice"), BOB, HELLO]);
    expect(first).toEqual({ code: 0, stdout: expect.stringContaining(BOB), stderr: "" });
    expect((await next(receiver)).payload).toEqual({ message: "Hello, Bob." });
    for (const words of [["-"], []]) {
      const { code } = await line.run(
        ["send", ...as("alice"), BOB, ...words, "--type", "message.note", "--task-id", "t"],
        {
          stdin: '{"piped":[1,2]}',
        },
      );
      expect(code).toBe(0);
      expect(await next(receiver)).toMatchObject({
        type: "message.note",
        payload: { piped: [1, 2] },
        envelope: { task_id: "t" },
      });
    }
  });

  test.each([
    ["the end of the limit", 1500, 6, "superseded_elsewhere"],
    ["the end of its own time", 60_000, 4, "rate_limited"],
  ])(
    "waits until %s where the relay's limit for its address is reached, which others may share, and takes no agent meanwhile",
    async (_, ms, exitCode, code) => {
      const alice = await line.stage.online("alice", line.url);
      const lift = await reachLimit(ms);
      await expectFailure(["send", "--json", ...as("alice"), BOB, HELLO], exitCode, code);
      await lift();
      expect(alice.state.status).toBe("online");
    },
  );

  test("waits so no longer than --wait-online allows, and says that it waits", async () => {
    const lift = await reachLimit(60_000);
    const env = { RELAY_API_KEY: line.stage.agent("alice").apiKey, RELAY_AGENT: "agent://alice" };
    const waits = line.begin(["send", "--json", "agent://nobody", HELLO, "--wait-online", "3"], env);
    expect(await waits.end()).toBe(5);
    await lift();
    expect(waits.reports).toMatchObject([
      { event: "waiting" },
      { event: "error", code: "timeout", outcome: "refused" },
    ]);
  });

  test("says that nobody got it when the target was not online, and prints one line of JSON when asked", async () => {
    const text = await line.run(["send", ...as("alice"), "agent://nobody", HELLO]);
    expect(text).toMatchObject({ code: 0, stdout: expect.stringContaining("agent://nobody"), stderr: "" });
    const json = await line.run(["send", "--json", ...as("alice"), "agent://nobody", HELLO]);
    expect(jsonLines(json.stdout)).toEqual([
      {
        ok: true,
        sealed: false,
        envelope_id: expect.any(String),
        target_delivery: { status: "not_seen", can_deliver_realtime: false },
        via: "connection",
      },
    ]);
    expect(json.stderr).toBe("");
  });

  test("waits for the target with --wait-online, and sends nothing when it does not come", async () => {
    const late = line.begin(["send", ...as("alice"), BOB, HELLO, "--wait-online", "60"]);
    const receiver = await bob();
    const { payload } = await next(receiver);
    expect(payload).toEqual({ message: "Hello, Bob." });
    expect(await late.end()).toBe(0);
  });

  test("with --wait-online waits until the target can be delivered to, and then says what both connectors say", async () => {
    const proxy = await line.stage.proxy(line.url);
    const { presence } = proxy;
    const congested = async () => JSON.stringify({ ok: true, status: "online", can_deliver_realtime: false });
    proxy.presence = async (path) => await (path.endsWith("alice") ? presence(path) : congested());
    const { apiKey } = line.stage.agent("alice");
    const overHttp = { RELAY_API_KEY: apiKey, RELAY_AGENT: "agent://alice" };
    for (const command of ["send", "ask"]) {
      const vain = [command, "--json", "--url", proxy.url, ...as("alice"), BOB, HELLO, "--wait-online", "1"];
      await expectFailure(vain, 5, "target_not_online");
    }
    await expectFailure(
      ["send", "--json", "--url", proxy.url, BOB, HELLO, "--wait-online", "1"],
      5,
      "target_not_online",
      overHttp,
    );
    expect(proxy.sent.filter(({ type }) => type === "message.send")).toEqual([]);
    await expectFailure(["send", "--json", ...as("alice"), BOB, HELLO, "--wait-online", "0"], 2, "usage");
  });

  test("goes through the relay listen of the same agent, which stays online", async () => {
    const receiver = await bob();
    const listener = await line.listen("alice");
    const { code, stdout } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "listener"]);
    expect(await next(receiver)).toMatchObject({ from: "agent://alice", payload: { message: "Hello, Bob." } });
    expect(listener.child.exitCode).toBeNull();

    const refused = await line.run(["send", ...as("alice"), "agent://BOB", HELLO]);
    expect(refused.code).toBe(2);
    expect(await listener.end("SIGTERM")).toBe(0);
    expect((await readdir(line.folder)).filter((name) => name.startsWith("agent-relay-"))).toHaveLength(1);
  });

  test("through a listener says within 3 s that the relay is away, and that nothing was sent", async () => {
    const listener = await line.listen("alice");
    await line.shut();
    await listener.reported("reconnecting");
    const before = performance.now();
    await expectFailure(["send", "--json", ...as("alice"), BOB, HELLO], 4, "unreachable");
    const startUpMs = 3000;
    expect(performance.now() - before).toBeLessThan(3000 + startUpMs);
    await line.serve();
    await listener.reported("online", 2);
    expect((await line.run(["send", ...as("alice"), BOB, HELLO])).code).toBe(0);
  });

  test("says within 3 s what it waits for, whether as text or as JSON, and sends it when it can", async () => {
    const listener = await line.listen("alice");
    listener.child.kill("SIGSTOP");
    const before = performance.now();
    const waiting = [[], ["--json"]].map((json) => line.begin(["send", ...json, ...as("alice"), BOB, HELLO]));
    await Promise.all(waiting.map((command) => command.wrote("Waiting for")));
    const startUpMs = 3000;
    expect(performance.now() - before).toBeLessThan(3000 + startUpMs);
    listener.child.kill("SIGCONT");
    for (const command of waiting) expect(await command.end()).toBe(0);
    expect(waiting[1]?.reports).toMatchObject([{ event: "waiting" }]);
  });

  test("as text says the outcome, too, where something was to be sent", async () => {
    const listener = await line.listen("alice");
    await line.shut();
    await listener.reported("reconnecting");
    const refused = await line.run(["send", ...as("alice"), BOB, HELLO]);
    await line.serve();
    await listener.reported("online", 2);
    await bob();
    const unknown = await line.run(["ask", ...as("alice"), BOB, HELLO, "--timeout", "1"]);
    const { stderr } = await line.run(["send", ...as("alice"), BOB, "hi"]);
    expect(refused.stderr).toContain("Outcome: refused.");
    expect(unknown.stderr).toContain("Outcome: unknown.");
    expect(stderr).not.toContain("utcome");
  });

  test("blames the payload alone, however the target is named", async () => {
    const named = await expectFailure(["send", "--json", ...as("alice"), "bob-hmac", "hi"], 2, "usage");
    expect(named).toBe(await expectFailure(["send", "--json", ...as("alice"), BOB, "hi"], 2, "usage"));
  });

  test("takes the name of an agent for its id, as request and status do", async () => {
    const receiver = await bob();
    expect((await line.run(["send", ...as("alice"), "bob-hmac", HELLO])).code).toBe(0);
    expect(await next(receiver)).toMatchObject({ from: "agent://alice" });
    const status = await line.run(["status", "--json", "bob-hmac"]);
    expect(jsonLines(status.stdout)).toMatchObject([{ agents: [{ agent_id: BOB, status: "online" }] }]);
    const request = await line.run(["request", "--json", ...as("alice"), "bob-hmac", "--purpose", "p"]);
    expect(jsonLines(request.stdout)).toMatchObject([{ target_delivery: { can_deliver_realtime: true } }]);
    for (const command of ["send", "request"]) {
      const purpose = command === "request" ? ["--purpose", "p"] : [HELLO];
      await expectFailure([command, "--json", ...as("alice"), "Bob!", ...purpose], 2, "usage");
    }
    await expectFailure(["status", "--json", "Bob!"], 2, "usage");
  });

  test("ignores the control socket that a killed relay listen left behind", async () => {
    const listener = await line.listen("alice");
    await listener.end("SIGKILL");
    await until(
      "alice is offline",
      async () => !(await line.run(["status", "--json", "agent://alice"])).stdout.includes('"status":"online"'),
    );
    const { code, stdout } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "connection"]);
  });

  test("does not take an agent from another program, unless it is told to", async () => {
    const alice = await line.stage.online("alice", line.url);
    const { states } = record(alice);
    await expectFailure(["send", "--json", ...as("alice"), BOB, HELLO], 6, "superseded_elsewhere");
    expect(states).toEqual([]);
    expect((await line.run(["send", "--take-over", ...as("alice"), BOB, HELLO])).code).toBe(0);
    await until("the other one ended", () => states.includes("closed"));
  });

  test("goes over HTTP with an API key, beside a connection of the same agent", async () => {
    const receiver = await bob();
    const alice = await line.stage.online("alice", line.url);
    const { states } = record(alice);
    const env = { RELAY_API_KEY: line.stage.agent("alice").apiKey, RELAY_AGENT: "agent://alice" };
    const { code, stdout } = await line.run(["send", "--json", BOB, HELLO], { env });
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "gateway"]);
    expect((await next(receiver)).verified).toBe("gateway");
    expect(states).toEqual([]);
    await expectFailure(["send", "--json", BOB, '{"n":1}'], 2, "usage", env);
    const wrong = { ...env, RELAY_API_KEY: "rk_wrong" };
    const stderr = await expectFailure(["send", "--json", BOB, HELLO], 7, "invalid_api_key", wrong);
    expect(stderr).not.toContain("rk_wrong");
  });

  test("tells by exit code and error code why nothing was sent", async () => {
    const send = (...args: string[]) => ["send", "--json", ...args];
    const url = await nowhere();
    const unreachable = await expectFailure(send("--url", url, ...as("alice"), BOB, HELLO), 4, "unreachable");
    expect(unreachable).toContain(url);
    await expectFailure(send("--url", "ftp://127.0.0.1", ...as("alice"), BOB, HELLO), 2, "usage");
    await expectFailure(send(BOB, HELLO), 7, "invalid_key");
    const noAgent = await expectFailure(send(BOB, HELLO), 7, "invalid_key", { RELAY_API_KEY: "rk_x" });
    expect(noAgent).toContain("RELAY_AGENT");
    await expectFailure(send("--key", "none.json", BOB, HELLO), 7, "invalid_key");
    await expectFailure(send(...as("alice"), BOB, "no json"), 2, "usage");
    await expectFailure(send(...as("alice"), "agent://BOB", HELLO), 2, "usage");
    await expectFailure(send(...as("alice"), "--type", "Mail", BOB, HELLO), 2, "invalid_envelope");
  });

  test("writes the reason as one line of text, without --json", async () => {
    const { code, stdout, stderr } = await line.run(["send", "--url", await nowhere(), ...as("alice"), BOB, HELLO]);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(/^relay: .+\n$/);
  });
});

describe("relay request, approve and reject", () => {
  test("negotiate a session from three command lines, while both agents listen", async () => {
    const listener = await line.listen("bob-hmac");
    await line.listen("alice");
    const request = line.begin(["request", ...as("alice"), BOB, "--purpose", "talk", "--ttl", "5", "--wait", "--json"]);
    await listener.prints(1);
    const { session_id: session, envelope } = listener.lines[0];
    expect(envelope.payload).toEqual({ purpose: "talk", ttl_minutes: 5 });
    await expectFailure(["approve", "--json", ...as("alice"), session], 3, "not_your_session");
    const approval = await line.run(["approve", "--json", ...as("bob-hmac"), session]);
    expect(approval.code).toBe(0);
    expect(jsonLines(approval.stdout)).toMatchObject([
      { session_id: session, session_status: "approved", target_delivery: { can_deliver_realtime: true } },
    ]);
    expect(await request.end()).toBe(0);
    const late = await line.run(["reject", ...as("bob-hmac"), session]);
    expect(late).toMatchObject({ code: 3, stderr: expect.stringContaining("It is approved since 20") });
    expect(await line.run(["status", session])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${session}  approved`),
    });
  });

  test("end with 3 when the session was rejected", async () => {
    await line.listen("bob-hmac");
    const request = line.begin(["request", ...as("alice"), BOB, "--purpose", "talk", "--wait", "--json"]);
    await until("it is pending", () => request.stdout.includes("ses_"));
    const session = /ses_[0-9a-z]{26}/.exec(request.stdout)?.[0] as string;
    expect((await line.run(["reject", ...as("bob-hmac"), session, "--reason", "no time"])).code).toBe(0);
    expect(await request.end()).toBe(3);
    expect(request.lines[1]).toEqual({ ok: true, session_id: session, session_status: "rejected", reason: "no time" });
    expect(request.reports.filter(({ event }) => event !== "waiting")).toEqual([]);
  });

  test("approve nothing that the target did not receive, which would count for nothing; it can be rejected", async () => {
    const request = await line.run(["request", ...as("alice"), BOB, "--purpose", "talk", "--json"]);
    const session = jsonLines(request.stdout)[0].session_id;
    await expectFailure(["approve", "--json", ...as("bob-hmac"), session], 3, "request_not_received");
    const rejected = await line.run(["reject", "--json", ...as("bob-hmac"), session]);
    expect(jsonLines(rejected.stdout)).toMatchObject([{ session_status: "rejected" }]);
    const again = await expectFailure(["reject", "--json", ...as("bob-hmac"), session], 3, "session_closed");
    expect(again).toContain("It is rejected since");
  });

  test("are waited for as long as it was told, where nobody decides", async () => {
    await line.listen("bob-hmac");
    const words = ["request", ...as("alice"), BOB, "--purpose", "talk", "--wait", "--timeout", "1", "--json"];
    const { code, stderr } = await line.run(words);
    expect([code, jsonLines(stderr).at(-1)?.code]).toEqual([5, "timeout"]);
  });

  test("wait for no decision on what nobody received", async () => {
    const words = ["request", ...as("alice"), BOB, "--purpose", "talk", "--wait", "--json"];
    const { code, stdout, stderr } = await line.run(words);
    expect(jsonLines(stdout)).toMatchObject([{ target_delivery: { can_deliver_realtime: false } }]);
    expect([code, jsonLines(stderr).at(-1)]).toMatchObject([5, { code: "target_not_online", retry: "later" }]);
  });

  test("name a session that nobody knows", async () => {
    await expectFailure(
      ["approve", "--json", ...as("bob-hmac"), "ses_00000000000000000000000000"],
      3,
      "unknown_session",
    );
  });
});

describe("Secrets", () => {
  test("are refused on the command line, and are not repeated", async () => {
    const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I";
    const option = [["--private-key", secret], [`--secret=${secret}`], ["--key", secret], ["--api-key", "rk_x"]];
    for (const args of [...option.map((words) => ["send", ...words, BOB, HELLO]), ["status", secret]]) {
      const stderr = await expectFailure([...args, "--json"], 2, "usage");
      expect(stderr).not.toContain(secret);
    }
  });

  test("in a file that others may read are warned of, and used", async () => {
    await chmod(line.keyFile("alice"), 0o644);
    const { code, stderr } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    await chmod(line.keyFile("alice"), 0o600);
    expect(code).toBe(0);
    expect(jsonLines(stderr)).toMatchObject([{ event: "warning" }]);
  });

  test("in a broken key file are not quoted", async () => {
    const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I";
    const broken = join(line.folder, "broken.json");
    for (const text of [
      `{"private_key":"${secret}`,
      `{"agent_id":"agent://a","key_id":"a","alg":"ed25519","secret":"${secret}"}`,
    ]) {
      await writeFile(broken, text, { mode: 0o600 });
      const { code, stderr } = await line.run(["send", "--key", broken, BOB, HELLO]);
      expect(code).toBe(7);
      expect(stderr).not.toContain(secret);
    }
  });
});
