import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { FIRST_START } from "../../src/limits.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, record } from "../kit.ts";
import { setTime } from "../times.ts";
import { BOB, HELLO } from "./control-kit.ts";
import { expectFailure } from "./failing.ts";
import { CommandLine, nowhere } from "./kit.ts";

afterEach(() => {
  jest.restoreAllMocks();
});

const line = shared(new CommandLine("alice", "bob-hmac"));

const as = (name: string) => ["--key", line.keyFile(name)];
const bob = () => line.stage.online("bob-hmac", line.url);

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

  test("blames the payload alone, however the target is named", async () => {
    const named = await expectFailure(line, ["send", "--json", ...as("alice"), "bob-hmac", "hi"], 2, "usage");
    expect(named).toBe(await expectFailure(line, ["send", "--json", ...as("alice"), BOB, "hi"], 2, "usage"));
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
      await expectFailure(line, [command, "--json", ...as("alice"), "Bob!", ...purpose], 2, "usage");
    }
    await expectFailure(line, ["status", "--json", "Bob!"], 2, "usage");
  });

  test("does not take an agent from another program, unless it is told to", async () => {
    const alice = await line.stage.online("alice", line.url);
    const { states } = record(alice);
    await expectFailure(line, ["send", "--json", ...as("alice"), BOB, HELLO], 6, "superseded_elsewhere");
    expect(states).toEqual([]);
    expect((await line.run(["send", "--take-over", ...as("alice"), BOB, HELLO])).code).toBe(0);
    await until("the other one ended", () => states.includes("closed"));
  });

  test("asks where RELAY_HTTP_URL says whether another program has the agent, where its address has the websocket alone", async () => {
    setTime(FIRST_START, "unknownKeyMs", 0);
    const pod = await line.stage.relay.startWsConnector();
    const alice = await line.stage.online("alice", line.url);
    const send = ["send", "--json", ...as("alice"), "--url", pod.url, BOB, HELLO];
    await expectFailure(line, send, 4, "not_a_relay");
    const env = { RELAY_HTTP_URL: line.url };
    expect(await line.run(send, { env })).toMatchObject({ code: 6 });
    await alice.close();
    expect(await line.run(send, { env })).toMatchObject({ code: 0 });
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
    await expectFailure(line, ["send", "--json", BOB, '{"n":1}'], 2, "usage", env);
    const wrong = { ...env, RELAY_API_KEY: "rk_wrong" };
    const stderr = await expectFailure(line, ["send", "--json", BOB, HELLO], 7, "invalid_api_key", wrong);
    expect(stderr).not.toContain("rk_wrong");
  });

  test("tells by exit code and error code why nothing was sent", async () => {
    const send = (...args: string[]) => ["send", "--json", ...args];
    const url = await nowhere();
    const unreachable = await expectFailure(line, send("--url", url, ...as("alice"), BOB, HELLO), 4, "unreachable");
    expect(unreachable).toContain(url);
    await expectFailure(line, send("--url", "ftp://127.0.0.1", ...as("alice"), BOB, HELLO), 2, "usage");
    await expectFailure(line, send(BOB, HELLO), 7, "invalid_key");
    const noAgent = await expectFailure(line, send(BOB, HELLO), 7, "invalid_key", { RELAY_API_KEY: "rk_x" });
    expect(noAgent).toContain("RELAY_AGENT");
    await expectFailure(line, send("--key", "none.json", BOB, HELLO), 7, "invalid_key");
    await expectFailure(line, send(...as("alice"), BOB, "no json"), 2, "usage");
    await expectFailure(line, send(...as("alice"), "agent://BOB", HELLO), 2, "usage");
    await expectFailure(line, send(...as("alice"), "--type", "Mail", BOB, HELLO), 2, "invalid_envelope");
  });

  test("refuses an address with a password or a query, names what gave it, and prints neither", async () => {
    const send = ["send", "--json", ...as("alice")];
    for (const address of [
      "http://user:secret@127.0.0.1",
      "http://127.0.0.1?token=secret",
      "https://127.0.0.1:99999",
    ]) {
      const told = await Promise.all([
        expectFailure(line, [...send, "--url", address, BOB, HELLO], 2, "usage"),
        expectFailure(line, [...send, BOB, HELLO], 2, "usage", { RELAY_URL: address }),
        expectFailure(line, [...send, BOB, HELLO], 2, "usage", { RELAY_HTTP_URL: address }),
      ]);
      const names = ["--url", "RELAY_URL", "RELAY_HTTP_URL"];
      expect(told).toEqual(names.map((name) => expect.stringContaining(`${name}: The `)));
      expect(told.join()).not.toContain("secret");
    }
  });

  test("writes the reason as one line of text, without --json", async () => {
    const { code, stdout, stderr } = await line.run(["send", "--url", await nowhere(), ...as("alice"), BOB, HELLO]);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(/^relay: .+\n$/);
  });
});

test.each([`send ${BOB} -`, "inspect -"])(
  "relay %s ends with the first signal while it reads standard input",
  async (words) => {
    const command = line.begin([...words.split(" "), "--json"], { RELAY_KEY_FILE: line.keyFile("alice") });
    command.stdin.write("{");
    await until("it reads", () => command.stdin.readableLength === 0);
    void command.stop();
    await until("it has ended", () => command.code !== undefined).finally(() => command.stdin.end());
    expect(command.code).toBe(130);
    expect(command.reports).toMatchObject([{ event: "error", code: "aborted", outcome: "refused" }]);
  },
);

describe("Secrets", () => {
  test("are refused on the command line, and are not repeated", async () => {
    const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I";
    const option = [["--private-key", secret], [`--secret=${secret}`], ["--key", secret], ["--api-key", "rk_x"]];
    for (const args of [...option.map((words) => ["send", ...words, BOB, HELLO]), ["status", secret]]) {
      const stderr = await expectFailure(line, [...args, "--json"], 2, "usage");
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
