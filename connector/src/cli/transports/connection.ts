import { Connector } from "../../connector.ts";
import { executeAsk } from "../control/ask.ts";
import { execute } from "../control/request.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import type { SigningAgent } from "../key-file.ts";
import type { RelayHttp } from "../relay-http.ts";
import type { AgentTransport } from "./transport.ts";

const REGISTERED_WITHIN_MS = 10_000;

/**
 * Over a connection of its own, which registers the agent and so ends the agent's connection elsewhere.
 * @param takeOver end it; without it, an agent that is online is refused.
 * @throws {Failure} `online_elsewhere`, `unreachable`.
 */
export async function connectionTransport(
  credentials: SigningAgent,
  http: RelayHttp,
  takeOver: boolean,
  io: Io,
): Promise<AgentTransport> {
  if (!takeOver) await refuseWhenOnline(credentials.agent, http);
  const connector = new Connector({ url: http.url, ...credentials });
  const deadline = AbortSignal.timeout(REGISTERED_WITHIN_MS);
  try {
    await connector.start({ signal: AbortSignal.any([io.signal, deadline]) });
  } catch (error) {
    if (deadline.aborted && !io.signal.aborted) throw unreachable(http);
    throw error;
  }
  return {
    name: "connection",
    send: (request) => execute(connector, request, io.signal),
    ask: (request) => executeAsk(connector, request, io.signal),
    close: () => connector.close(),
  };
}

async function refuseWhenOnline(agent: string, http: RelayHttp): Promise<void> {
  const presence = await http.patiently(() => http.presence(agent));
  if (presence?.status !== "online") return;
  throw new Failure(
    "online_elsewhere",
    `${agent} is online over another connection, which this command would end.`,
    "Send from the program that holds it, set RELAY_API_KEY to send over HTTP, or use --take-over, which ends the other connection.",
  );
}

function unreachable({ websocketUrl }: RelayHttp): Failure {
  return new Failure(
    "unreachable",
    `The relay answers over HTTP, but did not register the agent at ${websocketUrl} within 10 s.`,
    "Run relay check to find the cause.",
  );
}
