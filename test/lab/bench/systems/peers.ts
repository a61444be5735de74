import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { onPath } from "../../../../deploy/local/programs.mjs";
import { freePort } from "../../../support/free-port.ts";
import { PodProcess } from "../../../support/pod-process.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";
import { TestRedis } from "../../../support/test-redis.ts";
import { until } from "../../../support/until.ts";
import type { Speech } from "../load/dialects.ts";
import type { GatewayUnderTest } from "./agent-relay.ts";
import { type NodeArguments, type PeerName, RECEIVING, REDIS, SENDING, type SystemUnderTest } from "./system.ts";

const BARE = "test/lab/bench/peers/bare-relay.ts";
const SOCKET_IO = "test/lab/bench/peers/socket-io.ts";
const PEERS: Readonly<Record<PeerName, Peer>> = {
  bare: { program: BARE, settings: { ACKS: "no" }, dialect: "bare" },
  "bare-acks": { program: BARE, settings: { ACKS: "yes" }, dialect: "bare-acks" },
  "socket.io": { program: SOCKET_IO, settings: { ADAPTER: "classic" }, dialect: "socket.io" },
  "socket.io-sharded": { program: SOCKET_IO, settings: { ADAPTER: "sharded" }, dialect: "socket.io" },
};

interface Peer {
  readonly program: string;
  readonly settings: Record<string, string>;
  readonly dialect: Exclude<Speech["dialect"], "agent-relay">;
}

/** Two processes of one of the peers' programs, over a Redis of their own. */
export async function startPeer(name: PeerName, nodeArguments: NodeArguments): Promise<SystemUnderTest> {
  const { program, settings, dialect } = PEERS[name];
  const redis = new TestRedis();
  await redis.start();
  const start = (role: string, pod: string, otherPod: string) => {
    const environment = { ...settings, REDIS_PATH: redis.path, POD: pod, OTHER_POD: otherPod };
    return PodProcess.start(program, environment, nodeArguments(role));
  };
  const sending = await start(SENDING, "pod-a", "pod-b");
  const receiving = await start(RECEIVING, "pod-b", "pod-a");
  return {
    speech: { dialect },
    ports: [sending.port, receiving.port],
    pids: { [SENDING]: sending.pid, [RECEIVING]: receiving.pid, [REDIS]: await redis.pid() },
    async [Symbol.asyncDispose]() {
      await Promise.all([sending.stop(), receiving.stop()]);
      await redis.stop();
    },
  };
}

/** It takes any key, or none. */
export async function startBareKoa(apiKeyCount: number): Promise<GatewayUnderTest> {
  const redis = new TestRedis();
  await redis.start();
  const server = await PodProcess.start("test/lab/bench/peers/bare-koa.ts", { REDIS_PATH: redis.path });
  return {
    port: server.port,
    path: "/",
    apiKeys: Array.from({ length: apiKeyCount }, (_, n) => `key-${n}`.padEnd(39, "x")),
    pids: { gateway: server.pid, [REDIS]: await redis.pid() },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await redis.stop();
    },
  };
}

/** Path of the NATS server, where there is one. */
export function natsProgram(): string | undefined {
  return onPath("nats-server");
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
