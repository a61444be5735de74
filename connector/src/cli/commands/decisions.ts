import { membersOf, textOf } from "../../frames.ts";
import { PENDING } from "../../session-status.ts";
import type { JsonObject } from "../../types.ts";
import { AGENT_OPTIONS, readArguments, TAKE_OVER } from "../arguments.ts";
import { Failure, usageError } from "../failure.ts";
import type { Command, Options, Reporter } from "../io.ts";
import type { RelayHttp } from "../relay-http.ts";
import { sendOnce } from "../send-once.ts";
import type { ControlRequest } from "../sharing/requests.ts";

const OPTIONS = { ...AGENT_OPTIONS, ...TAKE_OVER } as const satisfies Options;
const REJECT_OPTIONS = {
  ...OPTIONS,
  reason: { type: "string", value: "TEXT", help: "the reason for the requester, at most 500 characters" },
} as const satisfies Options;

export const approve: Command = {
  usage: "<session> [options]",
  options: OPTIONS,
  examples: [
    "relay approve ses_01h2x3y4z5a6b7c8d9e0f1g2h3",
    "relay approve ses_01h2x3y4z5a6b7c8d9e0f1g2h3 --key bob.json",
  ],
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
  usage: "<session> [options]",
  options: REJECT_OPTIONS,
  examples: [
    "relay reject ses_01h2x3y4z5a6b7c8d9e0f1g2h3",
    `relay reject ses_01h2x3y4z5a6b7c8d9e0f1g2h3 --reason "not this week"`,
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, REJECT_OPTIONS);
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
      `${agent} requested this session itself. Only its target can decide it.`,
      "Wait for the decision, or decide with the key file of the target.",
    );
  }
  return session;
}

/** The relay would accept the approval, which then counts for nothing. */
function notReceived({ requester }: JsonObject, agent: string): Failure {
  return new Failure(
    "request_not_received",
    `${agent} was not online and did not receive this request, so an approval would not count.`,
    `Keep the agent online with relay listen, have ${requester} request a session again, and approve that one. relay reject ends this one.`,
    { retry: "never" },
  );
}
