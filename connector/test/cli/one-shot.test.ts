import { chmod, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { watchLeaks } from "../../../test/support/leaks.ts";
import { until } from "../../../test/support/until.ts";
import { next, record } from "../kit.ts";
import { CommandLine, jsonLines, nowhere } from "./kit.ts";

const line = new CommandLine("alice", "bob-hmac");
const BOB = "agent://bob-hmac";
const HELLO = '{"message":"Hello, Bob."}';
const noLeaks = watchLeaks();

beforeAll(() => line.start());
afterEach(() => line.clear());
afterAll(async () => {
  await line.stop();
  await noLeaks();
});

const as = (name: string) => ["--key", line.keyFile(name)];
const bob = () => line.stage.online("bob-hmac", line.url);

describe("relay send", () => {
  test("sends what its second word says, or what is piped in, and says that it was handed over", async () => {
    const receiver = await bob();
    const first = await line.run(["send", ...as("alice"), BOB, HELLO]);
    expect(first).toEqual({ code: 0, stdout: `Accepted. It was handed to ${BOB}.\n`, stderr: "" });
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

  test("says that nobody got it when the target was not online, and prints one line of JSON when asked", async () => {
    const { code, stdout } = await line.run(["send", ...as("alice"), "agent://nobody", HELLO]);
    expect(code).toBe(0);
    expect(stdout).toContain("nobody got it");
    const json = await line.run(["send", "--json", ...as("alice"), "agent://nobody", HELLO]);
    expect(jsonLines(json.stdout)).toEqual([
      {
        ok: true,
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
    const vain = await line.run(["send", ...as("alice"), "agent://nobody", HELLO, "--wait-online", "0"]);
    expect(vain).toMatchObject({ code: 5, stdout: "", stderr: expect.stringContaining("Nothing was sent") });
  });

  test("goes through the relay listen of the same agent, which stays online", async () => {
    const receiver = await bob();
    const listener = await line.listen("alice");
    const { code, stdout } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "listener"]);
    expect(await next(receiver)).toMatchObject({ from: "agent://alice", payload: { message: "Hello, Bob." } });
    expect(listener.child.exitCode).toBeNull();

    const refused = await line.run(["send", ...as("alice"), "agent://BOB", HELLO]);
    expect(refused.code).toBe(3);
    expect(await listener.end("SIGTERM")).toBe(0);
    expect((await readdir(line.folder)).filter((name) => name.startsWith("agent-relay-"))).toHaveLength(1);
  });

  test("is not led astray by what a killed relay listen left behind", async () => {
    const listener = await line.listen("alice");
    await listener.end("SIGKILL");
    await until(
      "alice is offline",
      async () => !(await line.run(["status", "agent://alice"])).stdout.includes(" online "),
    );
    const { code, stdout } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "connection"]);
  });

  test("does not take an agent from another program, unless it is told to", async () => {
    const alice = await line.stage.online("alice", line.url);
    const { states } = record(alice);
    const refused = await line.run(["send", ...as("alice"), BOB, HELLO]);
    expect(refused).toMatchObject({ code: 6, stdout: "", stderr: expect.stringContaining("--take-over") });
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
    const object = await line.run(["send", BOB, '{"n":1}'], { env });
    expect(object).toMatchObject({ code: 2, stderr: expect.stringContaining("only a text") });
    const wrong = await line.run(["send", BOB, HELLO], { env: { ...env, RELAY_API_KEY: "rk_wrong" } });
    expect(wrong.code).toBe(7);
    expect(wrong.stderr).not.toContain("rk_wrong");
  });

  test("says in words and by exit code why nothing was sent", async () => {
    const at = (url: string) => line.run(["send", "--url", url, ...as("alice"), BOB, HELLO]);
    expect(await at(await nowhere())).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("nothing listens there"),
    });
    expect(await at("ftp://127.0.0.1")).toMatchObject({ code: 2 });
    expect(await line.run(["send", BOB, HELLO])).toMatchObject({
      code: 7,
      stderr: expect.stringContaining("relay keygen"),
    });
    expect(await line.run(["send", "--key", "none.json", BOB, HELLO])).toMatchObject({ code: 7 });
    expect(await line.run(["send", ...as("alice"), BOB, "no json"])).toMatchObject({ code: 2 });
    expect(await line.run(["send", ...as("alice"), "agent://BOB", HELLO])).toMatchObject({ code: 3 });
    const json = await line.run(["send", "--json", "--url", await nowhere(), ...as("alice"), BOB, HELLO]);
    expect(jsonLines(json.stderr)).toEqual([{ event: "error", message: expect.any(String), code: "unreachable" }]);
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
    const approval = await line.run(["approve", ...as("bob-hmac"), session]);
    expect(approval).toMatchObject({
      code: 0,
      stdout: `Session ${session} is approved. It was handed to agent://alice.\n`,
    });
    expect(await request.end()).toBe(0);
    expect(await line.run(["reject", ...as("bob-hmac"), session])).toMatchObject({ code: 3 });
  });

  test("end with 3 when the session was rejected", async () => {
    const request = line.begin(["request", ...as("alice"), BOB, "--purpose", "talk", "--wait"]);
    await until("it is pending", () => request.stdout.includes("ses_"));
    const session = /ses_[0-9a-z]{26}/.exec(request.stdout)?.[0] as string;
    expect((await line.run(["reject", ...as("bob-hmac"), session, "--reason", "no time"])).code).toBe(0);
    expect(await request.end()).toBe(3);
    expect(request.stderr).toContain("rejected");
  });

  test("name a session that nobody knows", async () => {
    const { code, stderr } = await line.run(["approve", ...as("bob-hmac"), "ses_00000000000000000000000000"]);
    expect([code, stderr]).toEqual([3, expect.stringContaining("No such session")]);
  });
});

describe("Secrets", () => {
  test("are refused on the command line, and are not repeated", async () => {
    const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I";
    for (const words of [["--private-key", secret], [`--secret=${secret}`], ["--key", secret], ["--api-key", "rk_x"]]) {
      const { code, stderr, stdout } = await line.run(["send", ...words, BOB, HELLO]);
      expect([code, stderr]).toEqual([2, expect.stringContaining("must not stand on the command line")]);
      expect(stderr + stdout).not.toContain(secret);
    }
  });

  test("in a file that others may read are warned of, and used", async () => {
    await chmod(line.keyFile("alice"), 0o644);
    const { code, stderr } = await line.run(["send", ...as("alice"), BOB, HELLO]);
    await chmod(line.keyFile("alice"), 0o600);
    expect([code, stderr]).toEqual([0, expect.stringContaining("chmod 600")]);
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
