import { knownRetry } from "../../errors.ts";
import { textOf } from "../../frames.ts";
import type { JsonObject } from "../../types.ts";
import type { ControlClient } from "../control/client.ts";
import { findHolder } from "../control/holder.ts";
import type { ControlPlace } from "../control/place.ts";
import type { ControlResult } from "../control/request.ts";
import { Failure, hintOf } from "../failure.ts";
import type { AgentTransport } from "./transport.ts";

/** What only the process that has an agent's connection can do. */
export interface ListenerTransport extends AgentTransport {
  /** The receipt of a session. Rejects with a Failure. */
  receipt(sessionId: string): Promise<unknown>;
}

/**
 * Over the control socket of a `relay listen` or `relay mcp` of the same user and agent; undefined when none runs.
 * @throws {Failure} as findHolder does.
 */
export async function listenerTransport(place: ControlPlace): Promise<ListenerTransport | undefined> {
  const client = await findHolder(place);
  return client && transportOver(client, place.signal);
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
  const [code = "failed", message = "", hint = ""] = [members.code, members.message, members.hint].map(textOf);
  const details = { retry: knownRetry(members.retry), outcome: knownOutcome(members.outcome) };
  // The hint is for who writes lines.
  throw new Failure(code, message, hintOf({ code, hint }), details);
}

function knownOutcome(value: unknown): "refused" | "unknown" {
  return value === "unknown" ? value : "refused";
}

function disconnected({ aborted }: AbortSignal): Failure {
  const hint = "The message may have been sent.";
  if (aborted) return new Failure("aborted", "Interrupted.", hint, { outcome: "unknown" });
  return new Failure("timeout", "The process that was to send it has ended, or is not heard of any more.", hint, {
    outcome: "unknown",
  });
}
