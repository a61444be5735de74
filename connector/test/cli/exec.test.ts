import { PassThrough } from "node:stream";
import { describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import type { Io } from "../../src/cli/io.ts";
import { runProgram } from "../../src/cli/programs.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const BOB = "agent://bob-hmac";

const alice = () => line.stage.online("alice", line.url);
const text = (file: string) => line.text(file);

describe("relay listen --exec", () => {
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
    const io = { env: process.env, stderr: new PassThrough(), signal: new AbortController().signal } as unknown as Io;
    const pipes = () => process.getActiveResourcesInfo().filter((name) => name === "PipeWrap").length;
    const before = pipes();
    const left = `(${line.waitFor("go")}; echo; echo on > ${line.file("went")}) & true`;
    const run = (command: string, keepsOutput: boolean) =>
      runProgram(delivery, { command, variables: {}, keepsOutput }, io);
    expect(await run(`${left}; echo hi`, true)).toEqual({ exitCode: 0, printed: "hi\n" });
    expect(await run(left, false)).toEqual({ exitCode: 0, printed: "" });
    await until("their pipes are closed", () => pipes() === before);
    await line.write("go", "");
    await until("it went on", async () => (await text("went")) === "on\n");
  });
});
