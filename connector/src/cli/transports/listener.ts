import { knownRetry } from "../../errors.ts";
import { textOf } from "../../frames.ts";
import type { JsonObject } from "../../types.ts";
import { ControlClient } from "../control/client.ts";
import type { ControlResult } from "../control/request.ts";
import { socketFolder, socketPaths } from "../control/socket-path.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import type { SigningAgent } from "../key-file.ts";
import type { AgentTransport } from "./transport.ts";

/** What only the process that has an agent's connection can do. */
export interface ListenerTransport extends AgentTransport {
  /** The receipt of a session. Rejects with a Failure. */
  receipt(sessionId: string): Promise<unknown>;
}

/**
 * Over the control socket of a `relay listen` or `relay mcp` of the same user and agent; undefined when none runs.
 * @throws {Failure} `invalid_key` when it has not the agent's key.
 */
export async function listenerTransport(
  signing: SigningAgent,
  websocketUrl: string,
  io: Io,
): Promise<ListenerTransport | undefined> {
  const client = await connectToListener(signing, websocketUrl, io);
  return client && transportOver(client, io.signal);
}

/** A control socket of the agent, but `except`; undefined when no process of this user has its connection. @throws {Failure} as above. */
export async function connectToListener(
  signing: SigningAgent,
  websocketUrl: string,
  io: Io,
  except?: string,
): Promise<ControlClient | undefined> {
  const folder = await socketFolder(io.env);
  if (folder === undefined) return undefined;
  let refusal: unknown;
  for (const path of await socketPaths(folder, signing.agent, websocketUrl)) {
    if (path === except) continue;
    try {
      const client = await ControlClient.connect(path, signing, websocketUrl, io.signal);
      if (client !== undefined || io.signal.aborted) return client;
    } catch (error) {
      // Whatever lies there hides no other that has the key.
      refusal ??= error;
    }
  }
  if (refusal !== undefined) throw refusal;
  return undefined;
}

function transportOver(client: ControlClient, signal: AbortSignal): ListenerTransport {
  const ask = async (request: object) => {
    client.write(request);
    const answer = await client.next();
    if (answer === undefined) throw disconnected(signal);
    return resultOf(answer);
  };
  return {
    name: "listener",
    send: async (request) => (await ask(request)) as unknown as ControlResult,
    ask: async (request) => await ask(request),
    receipt: async (sessionId) => (await ask({ receipt: sessionId })).receipt,
    close: async () => client.close(),
  };
}

function resultOf({ event, ref: _, ...members }: JsonObject): JsonObject {
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
