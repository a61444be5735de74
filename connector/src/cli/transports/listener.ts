import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { knownRetry } from "../../errors.ts";
import { membersOf, textOf } from "../../frames.ts";
import { parseJson } from "../../parse-json.ts";
import type { JsonObject } from "../../types.ts";
import type { ControlResult } from "../control/request.ts";
import { socketFolder, socketPaths } from "../control/socket-path.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import { jsonLine } from "../output.ts";
import type { AgentTransport } from "./transport.ts";

/** What only the process that has an agent's connection can do. */
export interface ListenerTransport extends AgentTransport {
  /** The receipt of a session. Rejects with a Failure. */
  receipt(sessionId: string): Promise<unknown>;
}

/** Over the control socket of a `relay listen` or `relay mcp` of the same user and agent; undefined when none runs. */
export async function listenerTransport(
  agent: string,
  websocketUrl: string,
  io: Io,
): Promise<ListenerTransport | undefined> {
  const socket = await connectToListener(agent, websocketUrl, io);
  return socket && transportOver(socket, io.signal);
}

/** A control socket of the agent, but `except`; undefined when no process of this user has its connection. */
export async function connectToListener(
  agent: string,
  websocketUrl: string,
  io: Io,
  except?: string,
): Promise<Socket | undefined> {
  const folder = await socketFolder(io.env);
  if (folder === undefined) return undefined;
  for (const path of await socketPaths(folder, agent, websocketUrl)) {
    if (path === except) continue;
    const socket = await tryConnect(path);
    if (socket !== undefined) return socket;
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

function transportOver(socket: Socket, signal: AbortSignal): ListenerTransport {
  const lines = createInterface({ input: socket, signal })[Symbol.asyncIterator]();
  const ask = async (request: object) => {
    socket.write(`${jsonLine(request)}\n`);
    const { value, done } = await lines.next();
    if (done) throw disconnected(signal);
    return resultOf(parseJson(value));
  };
  return {
    name: "listener",
    send: async (request) => (await ask(request)) as unknown as ControlResult,
    ask: async (request) => await ask(request),
    receipt: async (sessionId) => (await ask({ receipt: sessionId })).receipt,
    close: async () => void socket.destroy(),
  };
}

function resultOf(answer: unknown): JsonObject {
  const { event, ref: _, ...members } = membersOf(answer);
  if (event !== "refused") return members;
  const { code, message, hint } = members;
  const details = { retry: knownRetry(members.retry), outcome: knownOutcome(members.outcome) };
  throw new Failure(textOf(code) ?? "failed", textOf(message) ?? "", textOf(hint) ?? "", details);
}

function knownOutcome(value: unknown): "refused" | "unknown" {
  return value === "unknown" ? value : "refused";
}

function disconnected({ aborted }: AbortSignal): Failure {
  const hint = "The message may have been sent.";
  if (aborted) return new Failure("aborted", "Interrupted.", hint, { outcome: "unknown" });
  return new Failure("timeout", "The process that was to send it has ended.", hint, { outcome: "unknown" });
}
