import {
  AGENT_OPTIONS,
  MESSAGE_OPTIONS,
  readArguments,
  readPayload,
  TAKE_OVER,
  targetOf,
  waitOnlineMs,
} from "../arguments.ts";
import { usageError } from "../failure.ts";
import type { Command, Options } from "../io.ts";
import { sendOnce } from "../send-once.ts";

const OPTIONS = {
  ...AGENT_OPTIONS,
  ...MESSAGE_OPTIONS,
  "task-id": { type: "string", value: "ID", help: "the task that the message belongs to" },
  seal: { type: "boolean", help: "encrypt the payload to the target" },
  ...TAKE_OVER,
} as const satisfies Options;

export const send: Command = {
  usage: "<agent> [payload] [options]",
  options: OPTIONS,
  examples: [
    `relay send agent://bob '{"message":"Hello, Bob."}'`,
    "jq '{report: .}' report.json | relay send agent://bob -",
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
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
