import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Listens on a free port of the loopback address, and says so as the relay's services do. */
export function listenAndSay(server: Server): void {
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ msg: "listening", port })}\n`);
  });
}

/** One of the peers' settings. */
export function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set.`);
  return value;
}
