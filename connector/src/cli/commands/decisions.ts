import { membersOf, textOf } from "../../frames.ts";
import { PENDING } from "../../session-status.ts";
import type { JsonObject } from "../../types.ts";
import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import { Failure, usageError } from "../failure.ts";
import type { Command, Reporter } from "../io.ts";
import type { RelayHttp } from "../relay-http.ts";
import { sendOnce } from "../send-once.ts";
import type { ControlRequest } from "../sharing/requests.ts";

const OPTIONS = { ...AGENT_OPTIONS, "take-over": { type: "boolean" } } as const;

const OPTIONS_HELP = `  --take-over    decide although the agent is online elsewhere, which ends that connection
  --key FILE     the agent's key file; or RELAY_KEY_FILE
  --url URL      the relay; or RELAY_URL; default http://127.0.0.1:8080
  --json         the result as one line of JSON

Only the agent that was asked can decide, with its own key: through a relay listen of the same agent on this machine, else
over a connection of its own. A request that it did not receive, since it was not online, can be rejected alone.
The id is all that you name: who requested the session, and is sent the decision, is what the relay says. The result names that agent.
`;

export const approve: Command = {
  help: `relay approve <session>: approve a session that another agent requested.

  relay approve ses_01h2x3y4z5a6b7c8d9e0f1g2h3

${OPTIONS_HELP}`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
    const sessionId = sessionIn(positionals);
    const request = async (http: RelayHttp, agent: string, reporter: Reporter): Promise<ControlRequest> => {
      const session = await sessionOf(sessionId, http, agent, reporter);
      const { status, target_delivery } = session;
      const isReceived = membersOf(target_delivery).can_deliver_realtime !== false;
      if (status === PENDING && !isReceived) throw notReceived(session, agent);
      return { to: textOf(session.requester) ?? "", approve: sessionId };
    };
    return await sendOnce(values, { isForGateway: false, request }, io);
  },
};

export const reject: Command = {
  help: `relay reject <session>: reject a session that another agent requested.

  relay reject ses_01h2x3y4z5a6b7c8d9e0f1g2h3 --reason "not this week"

  --reason TEXT  at most 500 characters, for the requester
${OPTIONS_HELP}`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, { ...OPTIONS, reason: { type: "string" } });
    const sessionId = sessionIn(positionals);
    const { reason } = values;
    const request = async (http: RelayHttp, agent: string, reporter: Reporter): Promise<ControlRequest> => {
      const to = textOf((await sessionOf(sessionId, http, agent, reporter)).requester) ?? "";
      return { to, reject: sessionId, ...(reason !== undefined && { reason }) };
    };
    return await sendOnce(values, { isForGateway: false, request }, io);
  },
};

function sessionIn([sessionId, ...others]: string[]): string {
  if (sessionId === undefined || others.length > 0) throw usageError("Name one session: ses_….");
  return sessionId;
}

/** What the relay knows of a session. @throws {Failure} of one that this agent requested itself. */
async function sessionOf(id: string, http: RelayHttp, agent: string, reporter: Reporter): Promise<JsonObject> {
  const session = await reporter.whileWaiting(`Waiting for the relay at ${http.url}.`, http.session(id));
  if (session.requester === agent) {
    throw new Failure(
      "not_your_session",
      `${agent} requested this session: only its target decides it.`,
      "Wait for the decision, or decide with the key file of the target.",
    );
  }
  return session;
}

/** The relay would accept the approval, which then counts for nothing. */
function notReceived({ requester }: JsonObject, agent: string): Failure {
  return new Failure(
    "request_not_received",
    `${agent} was not online and did not receive this request: to approve it would count for nothing.`,
    `Keep the agent online with relay listen, have ${requester} request again, and approve that one; relay reject ends this one.`,
    { retry: "never" },
  );
}
