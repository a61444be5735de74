import { textOf } from "../frames.ts";
import { AGENT_OPTIONS, readArguments } from "./arguments.ts";
import type { Io } from "./command.ts";
import { usage } from "./failure.ts";
import { sayOnce } from "./one-shot.ts";
import type { Order } from "./orders.ts";

const OPTIONS = { ...AGENT_OPTIONS, "take-over": { type: "boolean" } } as const;

/** Options of approve and reject, for their help. */
export const DECISION_OPTIONS = `  --take-over    decide although the agent is online elsewhere, which ends that connection
  --key FILE     the agent's key file; or RELAY_KEY_FILE
  --url URL      the relay; or RELAY_URL; http://127.0.0.1:8080 when left out
  --json         the result as one line of JSON

Only the agent that was asked decides, with its own key: through a relay listen of the same agent on this machine, else over
a connection of its own.
`;

export async function approve(args: string[], io: Io): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS);
  return await decide(positionals, values, (to, approve) => ({ to, approve }), io);
}

export async function reject(args: string[], io: Io): Promise<number> {
  const { values, positionals } = readArguments(args, { ...OPTIONS, reason: { type: "string" } });
  const { reason } = values;
  const order = (to: string, reject: string) => ({ to, reject, ...(reason !== undefined && { reason }) });
  return await decide(positionals, values, order, io);
}

/** The decision goes to the requester, whom the relay knows. */
async function decide(
  words: string[],
  options: Parameters<typeof sayOnce>[0],
  orderOf: (to: string, sessionId: string) => Order,
  io: Io,
): Promise<number> {
  const [sessionId, ...others] = words;
  if (sessionId === undefined || others.length > 0) throw usage("Name one session: ses_…");
  const order: Parameters<typeof sayOnce>[1]["order"] = async (http) => {
    const { requester } = await http.get(`/sessions/${encodeURIComponent(sessionId)}`);
    return orderOf(textOf(requester) ?? "", sessionId);
  };
  return await sayOnce(options, { isForGateway: false, order }, io);
}
