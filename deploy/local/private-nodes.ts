import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { NodeRunner } from "./cluster-node.ts";
import { redisProgram } from "./redis-program.mjs";

/**
 * Nodes that only this user reaches, on a machine that others use, too: with a password, since a port is anybody's, which
 * stands in a file of the node's folder and among no process's arguments.
 */
export function privateNodes(): NodeRunner {
  const password = randomBytes(24).toString("hex");
  return {
    command: async (folder, settings) => {
      const file = join(folder, "password.conf");
      await writeFile(file, `requirepass ${password}\nmasterauth ${password}\n`, { mode: 0o600 });
      return [redisProgram(), file, ...settings];
    },
    settings: {},
    userInfo: `default:${password}@`,
    login: [`AUTH ${password}`],
  };
}
