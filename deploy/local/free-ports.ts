import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Below the ports that systems give to connections and to who listens on port 0, which would take one before it is used, and beside
 * 10080, which `fetch` refuses.
 */
const FIRST = 11_000;
/** Processes that look at the same time look in parts of their own, as many as there are. */
const PART = 300;
const PARTS = 70;
const OWN = FIRST + (process.pid % PARTS) * PART;

/** Where this process looks next: in order, so that none is given twice before somebody listens there. */
let next = randomInt(PART);

/**
 * Ports of 127.0.0.1 that nobody listened on a moment ago, no two the same.
 * @throws {Error} when nobody may listen there.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = OWN + next;
    next = (next + 1) % PART;
    if (await isFree(port)) ports.push(port);
  }
  return ports;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  }
  server.close();
  await once(server, "close");
  return true;
}
