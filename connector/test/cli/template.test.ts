import { once } from "node:events";
import { copyFile, mkdir, symlink } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { until } from "../../../test/support/until.ts";
import { sharedByAll } from "../fixture.ts";
import { Process } from "./running.ts";
import { Shell } from "./shell.ts";

const CONNECTOR = new URL("../../", import.meta.url);

/** What console.log and its like would fill in: with the next argument, or with nothing. */
const SAID = "100%s of %d, %o, %j, %c and %%.";

/** A relay that accepts all, and says something of nothing. */
class TalkingRelay extends Shell {
  readonly #http = createServer((_, answer) => answer.end(JSON.stringify({ status: "offline" })));
  #server: WebSocketServer | undefined;
  #url = "";

  override async start(): Promise<void> {
    await super.start();
    await this.#writeAgent();
    this.#http.listen(0, "127.0.0.1");
    await once(this.#http, "listening");
    this.#server = new WebSocketServer({ server: this.#http });
    this.#url = `ws://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
    this.#server.on("connection", (socket) => {
      const tell = (frame: object) => socket.send(JSON.stringify(frame));
      tell({ frame: "hello", server_time: Date.now() });
      socket.on("message", (text) => {
        tell({ frame: "ack", accepted: true, envelope_id: JSON.parse(String(text)).id });
        tell({ frame: "error", code: "over_capacity", message: SAID, hint: SAID });
      });
    });
  }

  /** The agent that relay init writes, begun. */
  beginAgent(keyFile = "key.json"): Process {
    const env = { RELAY_URL: this.#url, RELAY_KEY_FILE: keyFile };
    return new Process(["main.ts"], { cwd: this.folder, env });
  }

  override async stop(): Promise<void> {
    for (const socket of this.#server?.clients ?? []) socket.terminate();
    this.#server?.close();
    this.#http.close();
    await super.stop();
  }

  async #writeAgent(): Promise<void> {
    await this.run(["keygen", "--agent", "agent://alice", "--out", "key.json"]);
    for (const file of ["main.ts", "agent.ts"])
      await copyFile(new URL(`templates/typescript/${file}`, CONNECTOR), this.file(file));
    await mkdir(this.file("node_modules"));
    await symlink(fileURLToPath(CONNECTOR), this.file("node_modules/agent-relay-connector"));
  }
}

const relay = sharedByAll(new TalkingRelay());

test("The agent that relay init writes says that it is online, and ends with a signal", async () => {
  const agent = relay.beginAgent();
  await until("it is online", () => agent.stdout.includes("agent://alice is online\n"));
  expect(await agent.end("SIGTERM")).toBe(0);
});

test("It shows what a relay says as it is, as no format", async () => {
  const agent = relay.beginAgent();
  await agent.wrote(`${SAID} ${SAID}\n`).finally(() => agent.end("SIGKILL"));
});

test.each([
  ["is missing", "missing.json", "cannot be read (ENOENT)"],
  ["is no key file", "package.json", "has no valid agent_id"],
])("It says in one line that its key file %s, and ends with 1", async (_, keyFile, why) => {
  await relay.write("package.json", { type: "module" });
  const agent = relay.beginAgent(keyFile);
  expect(await agent.end()).toBe(1);
  expect(agent.stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(`The key file ${keyFile} ${why}`)]);
});
