import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { parseJson } from "../../parse-json.ts";
import type { JsonObject } from "../../types.ts";
import { AGENT_OPTIONS, readArguments, wholeNumber } from "../arguments.ts";
import type { Command } from "../command.ts";
import { Failure, usageError } from "../failure.ts";
import type { Io } from "../io.ts";
import type { RelayHttp } from "../relay-http.ts";
import { sendOnce } from "../send-once.ts";
import { targetOf } from "../target.ts";

const POLL_MS = 1000;
const HOUR_S = 3600;

export const send: Command = {
  help: `relay send <to> [payload]: send a message.

  relay send agent://bob '{"message":"Hello, Bob."}'
  jq '{report: .}' report.json | relay send agent://bob -

The target is an agent id, or its name alone: bob. The payload is a JSON object: the second word, or standard input (-, or no second word).

  --key FILE             the agent's key file; or RELAY_KEY_FILE
  --url URL              the relay; or RELAY_URL; default http://127.0.0.1:8080
  --type TYPE            message.<word> instead of message.send
  --task-id ID           the task that it belongs to
  --wait-online SECONDS  wait so long for the target to come online; if it does not, nothing is sent (exit code 5)
  --seal                 encrypt it to the target, so that nobody else can read it; needs the target's issuer among the
                         trusted_issuers of the key file (or of the listener's --trust), and goes not over HTTP
  --take-over            send although the agent is online elsewhere, which ends that connection
  --json                 the result as one line of JSON

Transports: with RELAY_API_KEY over HTTP, signed by the relay's gateway (texts only: {"message":"…"}); else through a relay
listen of the same agent on this machine; else over a connection of its own.

Accepted is not delivered. The relay stores no contents: when the target is not online nobody receives the message; the
result tells so, and the exit code is still 0, unless --wait-online is given.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      type: { type: "string" },
      "task-id": { type: "string" },
      seal: { type: "boolean" },
      "wait-online": { type: "string" },
      "take-over": { type: "boolean" },
    });
    const [target, given, ...others] = positionals;
    if (target === undefined || others.length > 0)
      throw usageError("send takes the target and a payload, quoted as one word.");
    const to = targetOf(target);
    const waitSeconds = wholeNumber("wait-online", values["wait-online"], 0, HOUR_S);
    const payload = payloadOf(await payloadText(given, io), target === to);
    const { type, "task-id": task_id, seal = false } = values;
    const members = { ...(type !== undefined && { type }), ...(task_id !== undefined && { task_id }) };
    const sent = { to, payload, ...members, ...(seal && { seal }) };
    const request = async (http: RelayHttp) => {
      if (waitSeconds !== undefined) await untilOnline(to, waitSeconds, http, io.signal);
      return sent;
    };
    return await sendOnce(values, { isForGateway: !seal, request }, io);
  },
};

async function payloadText(given: string | undefined, { stdin }: Io): Promise<string> {
  if (given !== undefined && given !== "-") return given;
  if ((stdin as { isTTY?: boolean }).isTTY && given === undefined)
    throw usageError("The payload is missing: give it as the second word, or pipe it in.");
  return await text(stdin);
}

function payloadOf(given: string, targetIsId: boolean): JsonObject {
  try {
    const value: unknown = parseJson(given);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Reported below, without the text.
  }
  const what = "he payload is not a JSON object.";
  const message = targetIsId
    ? `T${what}`
    : `The target lacks agent:// (a name alone is taken for that of an agent), and t${what}`;
  throw usageError(message, `Quote it as one word, such as '{"message":"Hello"}'.`);
}

async function untilOnline(agent: string, seconds: number, http: RelayHttp, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  const isOnline = async () => (await http.patiently(() => http.presence(agent), deadline))?.status === "online";
  while (!(await isOnline())) {
    if (Date.now() >= deadline)
      throw new Failure("timeout", "The target did not come online in time.", "Nothing was sent.");
    await delay(POLL_MS, undefined, { signal }).catch(() => {});
  }
}
