import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, test } from "@jest/globals";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { Host } from "../mcp/kit.ts";
import { atHome, BIN, BOB, CommandLine, HELLO, Process } from "./shell.ts";

/** What only a process of its own can show. All else about the commands is tested in the process of the tests. */

const line = shared(new CommandLine("alice", "bob-hmac"));
const begun: Process[] = [];
const hosts: Host[] = [];
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.stop()));
  await Promise.all(begun.splice(0).map((process) => process.end("SIGKILL")));
});

const alice = () => line.stage.online("alice", line.url);

/** `relay`, as the shell starts it. */
function relay(...args: string[]): Process {
  const env = { RELAY_URL: line.url };
  const process = new Process([BIN, ...args], { cwd: line.folder, env });
  begun.push(process);
  return process;
}

async function listen(name: string, ...args: string[]): Promise<Process> {
  const listener = relay("listen", "--json", "--key", `${name}.json`, ...args);
  await listener.reported("online");
  return listener;
}

describe("The process of relay", () => {
  test("reads standard input, writes standard output without colours, and ends with the exit code of its command", async () => {
    const receiver = await line.stage.online("bob-hmac", line.url);
    const sending = relay("send", "--key", "alice.json", BOB, "-");
    sending.child.stdin?.end(HELLO);
    expect(await sending.end()).toBe(0);
    expect(sending.stdout).toContain(BOB);
    expect((await next(receiver)).payload).toEqual({ message: "Hello, Bob." });
    // No terminal shows it.
    const unknown = new Process([BIN, "fly"], { cwd: line.folder, env: { FORCE_COLOR: "1" } });
    expect([await unknown.end(), unknown.stdout]).toEqual([2, ""]);
    expect(unknown.stderr).toMatch(/^relay: .+\n$/);
  });

  test("stops with exit code 0 at SIGINT and SIGTERM", async () => {
    const both = [await listen("bob-hmac"), await listen("alice", "--stdin")] as const;
    expect(await both[0].end("SIGINT")).toBe(0);
    expect(await both[1].end("SIGTERM")).toBe(0);
  });

  test("ends quietly when nobody reads it any more", async () => {
    const listener = await listen("bob-hmac");
    listener.child.stdout?.destroy();
    const sender = await alice();
    await until("it has ended", async () => {
      await sender.send(BOB, {});
      return listener.child.exitCode !== null;
    });
    expect(await listener.end()).toBe(0);
    expect(listener.stderr.trim().split("\n")).toHaveLength(1);
  });
});

describe("The process of relay listen --exec", () => {
  const openDescriptors = ({ child }: Process, limit: string) =>
    execFileSync("prlimit", ["--pid", String(child.pid), `--nofile=${limit}:`]);

  test("has its programs write to its standard error, and what they leave behind even when it has ended", async () => {
    const listener = await listen(
      "bob-hmac",
      "--exec",
      `echo said; echo reported >&2; (${line.waitFor("go")}; echo late) & exit 1`,
    );
    await (await alice()).send(BOB, {});
    await listener.wrote("said\nreported\n");
    // The signal would also end what a program started that has not ended yet.
    await listener.reported("exec_failed");
    const exited = once(listener.child, "exit");
    listener.child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    await line.write("go", "");
    await listener.wrote("late\n");
  });

  test("goes on where a program cannot be started for want of file descriptors", async () => {
    const listener = await listen("bob-hmac", "--exec", "echo x >> started");
    const sender = await alice();
    openDescriptors(listener, "3");
    await sender.send(BOB, {});
    await listener.reported("exec_failed");
    openDescriptors(listener, "1024");
    await sender.send(BOB, {});
    await until("a program ran", async () => (await line.text("started")) !== "");
  });
});

describe("The process of relay mcp", () => {
  /** How a host starts alice's server, in the environment of a desktop. */
  async function host(): Promise<Host> {
    const args = [...atHome(line.folder), BIN, "mcp", "--json", "--key", "alice.json"];
    const env = { RELAY_URL: line.url, HOME: "/elsewhere", XDG_RUNTIME_DIR: "/elsewhere", TMPDIR: "/elsewhere" };
    const command = { command: process.execPath, args, cwd: line.folder, env };
    const started = new Host(new StdioClientTransport({ ...command, stderr: "ignore" }));
    hosts.push(started);
    return await started.start();
  }

  /** Its agent is online. */
  async function server(): Promise<Process> {
    const running = relay("mcp", "--json", "--key", "alice.json");
    await running.reported("online");
    return running;
  }

  test("shares the connection of another process, whatever its environment is, and takes over when that one is killed", async () => {
    const [other, receiver] = [await server(), await line.stage.online("bob-hmac", line.url)];
    const model = await host();
    await model.untilConnection("online");
    const { connection } = await model.call("my_status");
    expect(connection).toMatchObject({ status: "online", shared_with: expect.any(String) });
    await other.end("SIGKILL");
    await model.untilAlone();
    await model.call("send_message", { to: BOB, message: "still here" });
    expect((await next(receiver)).payload).toEqual({ message: "still here" });
  });

  test("ends with 0 when its client closes stdin, and has written nothing but MCP", async () => {
    const served = await server();
    served.child.stdin?.end();
    expect(await served.end()).toBe(0);
    expect(served.stdout).toBe("");
  });

  test("ends with 0 on SIGTERM while a call waits", async () => {
    const served = await server();
    const params = { name: "wait_for_messages", arguments: { timeout_seconds: 50 } };
    for (const request of [
      { id: 1, method: "tools/call", params },
      { id: 2, method: "ping" },
    ])
      served.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...request })}\n`);
    await served.prints(1);
    expect(served.lines).toEqual([{ jsonrpc: "2.0", id: 2, result: {} }]);
    expect(await served.end("SIGTERM")).toBe(0);
  });
});

test("relay names the Node that it needs, and two ways to it, on one that runs no TypeScript", async () => {
  const old = new Process(["--no-experimental-strip-types", BIN, "--help"], { cwd: line.folder, env: {} });
  expect([await old.end(), old.stdout]).toEqual([1, ""]);
  expect(old.stderr).toMatch(/^relay .*Node 22\.18 or later.*nodejs\.org.*npx .*--package=node@24 -- relay .*\n$/);
});
