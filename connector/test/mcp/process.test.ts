import { afterEach, expect, test } from "@jest/globals";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { atHome, BIN, Process } from "../cli/running.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { Host, McpStage } from "./kit.ts";

/** What only a process of its own can show: how it ends, and what it leaves behind. */

const stage = shared(new McpStage("alice", "bob"));
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()));
});

/** How a host starts alice's server. */
async function command() {
  const args = [BIN, "mcp", "--json", "--key", await stage.keyFile(stage.agent("alice"))];
  return { args, cwd: stage.path("."), env: { RELAY_URL: stage.url } };
}

/** The same in the environment of a desktop, with the options of Node that `Process` adds. */
async function hosted() {
  const { args, cwd, env } = await command();
  const desktop = { HOME: "/elsewhere", XDG_RUNTIME_DIR: "/elsewhere", TMPDIR: "/elsewhere" };
  return { cwd, env: { ...env, ...desktop }, args: [...atHome(cwd), ...args] };
}

/** Its agent is online. */
async function server(): Promise<Process> {
  const { args, ...options } = await command();
  const running = new Process(args, options);
  ends.push(() => running.end("SIGKILL"));
  await running.reported("online");
  return running;
}

async function host(): Promise<Host> {
  const started = new Host(
    new StdioClientTransport({ command: process.execPath, stderr: "ignore", ...(await hosted()) }),
  );
  ends.push(() => started.stop());
  return await started.start();
}

test("A server of a host shares the connection of another process, whatever its environment is, and takes over when that one is killed", async () => {
  const [other, bob] = [await server(), await stage.online("bob", stage.url)];
  const model = await host();
  await model.untilConnection("online");
  expect((await model.call("my_status")).connection).toMatchObject({
    status: "online",
    shared_with: expect.any(String),
  });
  await other.end("SIGKILL");
  await model.untilAlone();
  await model.call("send_message", { to: "agent://bob", message: "still here" });
  expect((await next(bob)).payload).toEqual({ message: "still here" });
});

test("The process ends with 0 when its client closes stdin, and has written nothing but MCP", async () => {
  const alice = await server();
  alice.child.stdin?.end();
  expect(await alice.end()).toBe(0);
  expect(alice.stdout).toBe("");
});

test("The process ends with 0 on SIGTERM while a call waits", async () => {
  const alice = await server();
  const params = { name: "wait_for_messages", arguments: { timeout_seconds: 50 } };
  for (const request of [
    { id: 1, method: "tools/call", params },
    { id: 2, method: "ping" },
  ])
    alice.child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...request })}\n`);
  await alice.prints(1);
  expect(alice.lines).toEqual([{ jsonrpc: "2.0", id: 2, result: {} }]);
  expect(await alice.end("SIGTERM")).toBe(0);
});
