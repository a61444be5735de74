import { PodProcess } from "../../../support/pod-process.ts";
import { TestRedis } from "../../../support/test-redis.ts";
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
