import { PodProcess } from "../../../support/pod-process.ts";
import { TestRedis } from "../../../support/test-redis.ts";
import type { GatewayUnderTest } from "./agent-relay.ts";
import { type NodeArguments, RECEIVING, REDIS, SENDING, type SystemUnderTest } from "./system.ts";

/** Two processes of one of the peers' programs, over a Redis of their own. */
export async function startPeer(dialect: "bare" | "socket.io", nodeArguments: NodeArguments): Promise<SystemUnderTest> {
  const redis = new TestRedis();
  await redis.start();
  const program = `test/lab/bench/peers/${dialect === "bare" ? "bare-relay" : "socket-io"}.ts`;
  const start = (role: string, pod: string, otherPod: string) =>
    PodProcess.start(program, { REDIS_PATH: redis.path, POD: pod, OTHER_POD: otherPod }, nodeArguments(role));
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
