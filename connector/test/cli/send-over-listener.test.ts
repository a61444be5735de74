import { readdir } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next } from "../kit.ts";
import { BOB, HELLO } from "./control-kit.ts";
import { expectFailure } from "./failing.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

const as = (name: string) => ["--key", line.keyFile(name)];
const bob = () => line.stage.online("bob-hmac", line.url);

describe("relay send, beside a relay listen of its agent,", () => {
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
    await expectFailure(line, ["send", "--json", ...as("alice"), BOB, HELLO], 4, "unreachable");
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
});
