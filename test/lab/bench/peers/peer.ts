import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

/** Peers at their best: the options that their programs are given, and that the report shows. */

/** ioredis, in every peer: what one turn of the event loop asks leaves in one write, and is answered in one read. */
export const REDIS_CLIENT = { enableAutoPipelining: true } as const;

/** ws, in the bare relay. */
export const WEBSOCKETS = { perMessageDeflate: false, clientTracking: false } as const;

/** Socket.IO, with either adapter. */
export const SOCKET_IO = { transports: ["websocket"], perMessageDeflate: false } as const;

/** Its sharded adapter. */
export const SHARDED_ADAPTER = { subscriptionMode: "dynamic" } as const;

/** Threads of ours that verify, and so of the bare verification: one a core, and no more than so many. */
export const MAX_VERIFICATION_THREADS = 4;

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
