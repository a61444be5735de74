import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { knownRetry } from "../../errors.ts";
import { membersOf, textOf } from "../../frames.ts";
import { parseJson } from "../../parse-json.ts";
import type { ControlResult } from "../control/request.ts";
import { socketFolder, socketPaths } from "../control/socket-path.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import { jsonLine } from "../output.ts";
import type { Transport } from "./transport.ts";

/** Over the control socket of a `relay listen` of the same user and agent; undefined when none runs. */
export async function listenerTransport(agent: string, websocketUrl: string, io: Io): Promise<Transport | undefined> {
  const folder = await socketFolder(io.env);
  if (folder === undefined) return undefined;
  for (const path of await socketPaths(folder, agent, websocketUrl)) {
    const socket = await tryConnect(path);
    if (socket !== undefined) return transportOver(socket, io.signal);
    await rm(path, { force: true });
  }
  return undefined;
}

/** Undefined when its listener has ended. */
async function tryConnect(path: string): Promise<Socket | undefined> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return socket.on("error", () => {});
  } catch {
    return undefined;
  }
}

function transportOver(socket: Socket, signal: AbortSignal): Transport {
  const lines = createInterface({ input: socket, signal })[Symbol.asyncIterator]();
  return {
    name: "listener",
    send: async (request) => {
      socket.write(`${jsonLine(request)}\n`);
      const { value, done } = await lines.next();
      if (done) throw disconnected(signal);
      return resultOf(parseJson(value));
    },
    close: async () => void socket.destroy(),
  };
}

function resultOf(answer: unknown): ControlResult {
  const { event, ref: _, ...members } = membersOf(answer);
  if (event === "accepted") return members as unknown as ControlResult;
  const { code, message, hint, retry } = members;
  throw new Failure(textOf(code) ?? "failed", textOf(message) ?? "", textOf(hint) ?? "", knownRetry(retry));
}

function disconnected({ aborted }: AbortSignal): Failure {
  if (aborted) return new Failure("aborted", "Interrupted.", "The message may have been sent.");
  return new Failure("timeout", "The relay listen that was to send it has ended.", "The message may have been sent.");
}
