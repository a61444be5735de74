import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, totalmem, type } from "node:os";
import { redisProgram } from "../../../deploy/local/redis-program.mjs";
import { natsVersion } from "./systems/nats.ts";

/** What the figures depend on; no names of hosts. */
export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGiB: number;
  readonly versions: Readonly<Record<string, string>>;
}

export function describeMachine(): Machine {
  const nats = natsVersion();
  const redis = spawnSync(redisProgram(), ["--version"], { encoding: "utf8" }).stdout;
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    versions: {
      [type()]: readFileSync("/proc/sys/kernel/osrelease", "utf8").trim(),
      Node: process.version,
      Redis: /v=(\S+)/.exec(redis)?.[1] ?? "unknown",
      ...(nats === undefined ? {} : { NATS: nats }),
      ...Object.fromEntries(["ws", "ioredis", "socket.io", "koa"].map((name) => [name, packageVersion(name)])),
    },
  };
}

export function machineText({ cores, cpu, memoryGiB, versions }: Machine): string {
  const programs = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${cores} cores of ${cpu}, ${memoryGiB} GiB; ${programs.join(", ")}.`;
}

function packageVersion(name: string): string {
  const file = new URL(`../../../node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}
