import { rm } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import type { Running } from "../cli/running.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next } from "../kit.ts";
import { McpStage } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"];
const KEY = { key_id: "alice-1", alg: "ed25519" };

const stage = shared(new McpStage("alice", "bob"));

async function ended(process: Running) {
  return { code: await process.end(), stderr: process.stderr };
}

describe("While the key cannot be used", () => {
  test.each([
    ["is missing", undefined, "invalid_key"],
    ["is not JSON", "{", "invalid_key"],
    ["names no agent", KEY, "invalid_key"],
    ["has a key that is none", { agent_id: ALICE, ...KEY, private_key: "short" }, "invalid_key"],
    ["has a credential that is none", { agent_id: ALICE, ...KEY, credential: "none" }, "invalid_credential"],
  ])("a server whose file %s serves a client, and each tool says why, and what to do", async (_, record, code) => {
    const file = stage.path("unusable.json");
    await rm(file, { force: true });
    if (record !== undefined) await stage.write("unusable.json", record);
    const host = await stage.hostOf(file, stage.url);
    expect((await host.client.listTools()).tools).toHaveLength(10);
    const problem = { code, message: expect.any(String), hint: expect.any(String), retry: "fix", outcome: "refused" };
    for (const [tool, input] of [
      ["my_status", {}],
      ["wait_for_messages", {}],
      ["send_message", { to: BOB, message: "hi" }],
    ] as const) {
      expect(await host.error(tool, input)).toEqual({ ...problem, connection: { status: "idle" } });
    }
    const { message, hint } = await host.error("my_status");
    expect(jsonLines(host.log)).toMatchObject([{ event: "error", code, hint }]);
    expect(jsonLines(host.log)[0].message).toContain(message);
    expect(host.hasEnded).toBe(false);
  });

  test("an agent begins with the first call after the file was mended, and gets messages from then on", async () => {
    const file = await stage.write("alice-1.json", "{");
    const host = await stage.hostOf(file, stage.url);
    expect(await host.error("my_status")).toMatchObject({ code: "invalid_key" });
    await stage.keyFile(stage.agent("alice"));
    expect(await host.call("my_status")).toMatchObject({ agent_id: ALICE });
    await host.untilConnection("online");
    const bob = await stage.online("bob", stage.url);
    await host.call("send_message", { to: BOB, message: "here I am" });
    expect((await next(bob)).payload).toEqual({ message: "here I am" });
    await bob.send(ALICE, { n: 1 });
    expect(await host.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 1 } }] });
  });

  test("a process that ends has the exit code of that, and one that is to serve HTTP ends at once", async () => {
    const file = stage.path("missing.json");
    const http = stage.beginOf(file, stage.url, ["--http", "127.0.0.1:0"]);
    const stdio = stage.beginOf(file, stage.url);
    stdio.stdin.end();
    for (const { code, stderr } of await Promise.all([http, stdio].map(ended))) {
      expect(code).toBe(7);
      expect(jsonLines(stderr)).toMatchObject([{ event: "error", code: "invalid_key" }]);
    }
  });

  test("no key at all is told, too", async () => {
    const host = await stage.keylessHost(stage.url);
    expect(await host.error("my_status")).toMatchObject({ code: "invalid_key", hint: expect.any(String) });
  });
});
