import { Connector } from "../../connector.ts";
import { membersOf } from "../../frames.ts";
import type { Io } from "../command.ts";
import { Failure } from "../failure.ts";
import type { Signatory } from "../key-file.ts";
import { carryOut } from "../orders.ts";
import type { RelayHttp } from "../relay-http.ts";
import type { Route } from "./route.ts";

const REGISTERED_WITHIN_MS = 10_000;

/**
 * Over a connection of its own, for which the agent is registered: that takes it from whoever has it.
 * @param takeOver that is meant to happen.
 * @throws {Failure} `online_elsewhere` when it is not, `unreachable`.
 */
export async function connectionRoute(who: Signatory, http: RelayHttp, takeOver: boolean, io: Io): Promise<Route> {
  if (!takeOver) await refuseWhenOnline(who.agent, http);
  const connector = new Connector({ url: http.url, ...who });
  const deadline = AbortSignal.timeout(REGISTERED_WITHIN_MS);
  try {
    await connector.start({ signal: AbortSignal.any([io.signal, deadline]) });
  } catch (error) {
    if (deadline.aborted && !io.signal.aborted) throw unreachable(http);
    throw error;
  }
  return {
    name: "connection",
    place: (order) => carryOut(connector, order, io.signal),
    close: () => connector.close(),
  };
}

async function refuseWhenOnline(agent: string, http: RelayHttp): Promise<void> {
  const { status } = membersOf(await http.get(`/api/onboarding/check-online?agent_id=${encodeURIComponent(agent)}`));
  if (status !== "online") return;
  throw new Failure(
    "online_elsewhere",
    `${agent} is online over another connection, and this command would take it away from there.`,
    "Send from the program that holds it, set RELAY_API_KEY to send over HTTP, or give --take-over, which ends the other connection.",
  );
}

function unreachable({ websocketUrl }: RelayHttp): Failure {
  return new Failure(
    "unreachable",
    `The relay answers over HTTP, but did not register the agent at ${websocketUrl} within 10 s.`,
    "relay check finds out more.",
  );
}
