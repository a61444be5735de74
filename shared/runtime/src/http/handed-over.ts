import type { Socket } from "node:net";

/**
 * Frees what Node keeps on a socket for as long as it is open, though its server has handed it over: the timer of its timeout,
 * which is stopped and never started again, and the address of its client, which nobody may keep. Of tens of thousands of
 * websockets these are 300 bytes each. Node documents neither: a test looks for both.
 */
export function detachFromHttp(socket: Socket): void {
  socket.setTimeout(0);
  const timer = Object.getOwnPropertySymbols(socket).find(({ description }) => description === "timeout");
  const remains = socket as unknown as Record<symbol | string, unknown>;
  if (timer !== undefined) remains[timer] = null;
  if (remains._peername !== undefined) remains._peername = undefined;
}
