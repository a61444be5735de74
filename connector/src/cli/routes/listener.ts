import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { membersOf, textOf } from "../../frames.ts";
import type { Io } from "../command.ts";
import { Failure } from "../failure.ts";
import { socketFolder, socketPaths } from "../listener-socket.ts";
import type { Receipt } from "../orders.ts";
import { jsonLine } from "../output.ts";
import type { Route } from "./route.ts";

/** Through a `relay listen` of the same user that holds the agent online; undefined when none runs. */
export async function listenerRoute(agent: string, websocketUrl: string, io: Io): Promise<Route | undefined> {
  const folder = await socketFolder(io.env);
  if (folder === undefined) return undefined;
  for (const path of await socketPaths(folder, agent, websocketUrl)) {
    const socket = await reach(path);
    if (socket !== undefined) return routeThrough(socket, io.signal);
    await rm(path, { force: true });
  }
  return undefined;
}

/** Undefined when its listener is dead. */
async function reach(path: string): Promise<Socket | undefined> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return socket.on("error", () => {});
  } catch {
    return undefined;
  }
}

function routeThrough(socket: Socket, signal: AbortSignal): Route {
  const lines = createInterface({ input: socket, signal })[Symbol.asyncIterator]();
  return {
    name: "listener",
    place: async (order) => {
      socket.write(`${jsonLine(order)}\n`);
      const { value, done } = await lines.next();
      if (done) throw lost(signal);
      return receiptOf(JSON.parse(value));
    },
    close: async () => void socket.destroy(),
  };
}

function receiptOf(answer: unknown): Receipt {
  const { event, ref: _, ...members } = membersOf(answer);
  if (event === "accepted") return members as unknown as Receipt;
  const { code, message, hint } = members;
  throw new Failure(textOf(code) ?? "failed", textOf(message) ?? "", textOf(hint) ?? "");
}

function lost({ aborted }: AbortSignal): Failure {
  if (aborted) return new Failure("aborted", "Interrupted.", "It may have been sent.");
  return new Failure("timeout", "The relay listen that was to send it has ended.", "It may have been sent.");
}
