import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { onPath } from "../../../../deploy/local/programs.mjs";
import { freePort } from "../../../support/free-port.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";
import { until } from "../../../support/until.ts";
import { RECEIVING, SENDING, type SystemUnderTest } from "./system.ts";

/** Path of the NATS server, where there is one. */
export function natsProgram(): string | undefined {
  return onPath("nats-server");
}

/** What it says of itself: `nats-server: v2.9.10`. */
export function natsVersion(): string | undefined {
  const program = natsProgram();
  return program && /v[\d.]+/.exec(spawnSync(program, ["--version"], { encoding: "utf8" }).stdout)?.[0];
}

/** Two NATS servers in a cluster, each with a websocket port. */
export async function startNats(): Promise<SystemUnderTest> {
  const program = natsProgram();
  if (program === undefined) throw new Error("There is no nats-server on the PATH.");
  const folder = await temporaryFolder();
  const [clusterPorts, ports] = [await twoPorts(), await twoPorts()];
  const routes = clusterPorts.map((port) => `nats://127.0.0.1:${port}`);
  const start = async (n: 0 | 1) => {
    const config = join(folder.path, `nats-${n}.conf`);
    await writeFile(config, configText(ports[n], clusterPorts[n], routes));
    const child = spawn(program, ["-c", config], { stdio: "ignore" });
    await until("NATS takes connections", () => takesConnections(ports[n]));
    return child;
  };
  const [sending, receiving] = [await start(0), await start(1)];
  return {
    speech: { dialect: "nats" },
    ports,
    pids: { [SENDING]: sending.pid as number, [RECEIVING]: receiving.pid as number },
    async [Symbol.asyncDispose]() {
      await Promise.all([sending, receiving].map(end));
      await folder[Symbol.asyncDispose]();
    },
  };
}

function configText(port: number, clusterPort: number, routes: readonly string[]): string {
  return `
    host: "127.0.0.1", port: -1
    websocket { host: "127.0.0.1", port: ${port}, no_tls: true }
    cluster { name: "bench", host: "127.0.0.1", port: ${clusterPort}, routes: ${JSON.stringify(routes)} }
  `;
}

async function twoPorts(): Promise<[number, number]> {
  return [await freePort(), await freePort()];
}

async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const took = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return took;
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
