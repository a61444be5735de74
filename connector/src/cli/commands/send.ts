import { AGENT_OPTIONS, readArguments, readPayload, targetOf, waitOnlineMs } from "../arguments.ts";
import { usageError } from "../failure.ts";
import type { Command } from "../io.ts";
import { sendOnce } from "../send-once.ts";

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

Transports: with RELAY_API_KEY, as the agent of the key file or of RELAY_AGENT, over HTTP, signed by the relay's gateway (texts
only: {"message":"…"}); else through a relay listen of the same agent on this machine; else over a connection of its own.

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
    const wait_online_ms = waitOnlineMs(values["wait-online"]);
    const payload = await readPayload(given, io);
    const { type, "task-id": task_id, seal = false } = values;
    const members = {
      ...(type !== undefined && { type }),
      ...(task_id !== undefined && { task_id }),
      ...(wait_online_ms !== undefined && { wait_online_ms }),
    };
    const sent = { to, payload, ...members, ...(seal && { seal }) };
    return await sendOnce(values, { isForGateway: !seal, request: async () => sent }, io);
  },
};
