import type { Delivery } from "../../types.ts";
import {
  AGENT_OPTIONS,
  MAX_WAIT_S,
  MESSAGE_OPTIONS,
  readArguments,
  readPayload,
  TAKE_OVER,
  targetOf,
  waitingText,
  waitOnlineMs,
  wholeNumber,
} from "../arguments.ts";
import { EXIT, usageError } from "../failure.ts";
import type { Command, Options } from "../io.ts";
import { deliveryMembers, jsonLine, Reporter, writeLine } from "../io.ts";
import { readIdentity } from "../key-file.ts";
import { RelayHttp } from "../relay-http.ts";
import { openAgentTransport } from "../transport.ts";

const DEFAULT_TIMEOUT_S = 30;

const OPTIONS = {
  ...AGENT_OPTIONS,
  ...MESSAGE_OPTIONS,
  timeout: { type: "string", value: "SECONDS", help: `how long the reply may take; default ${DEFAULT_TIMEOUT_S}` },
  seal: { type: "boolean", help: "encrypt question and reply" },
  ...TAKE_OVER,
} as const satisfies Options;

export const ask: Command = {
  usage: "<agent> [payload] [options]",
  options: OPTIONS,
  examples: [
    `relay ask agent://bob '{"message":"How warm is it?"}'`,
    "jq '{report: .}' report.json | relay ask agent://bob - --timeout 60",
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
    const [target, given, ...others] = positionals;
    if (target === undefined || others.length > 0)
      throw usageError("ask takes the target and a payload, quoted as one word.");
    const { json = false, type, seal, "take-over": takeOver = false } = values;
    const to = targetOf(target);
    const wait_online_ms = waitOnlineMs(values["wait-online"]);
    const timeoutSeconds = wholeNumber("timeout", values.timeout, 1, MAX_WAIT_S) ?? DEFAULT_TIMEOUT_S;
    const payload = await readPayload(given, io);
    const reporter = new Reporter(io.stderr, json);
    const http = new RelayHttp(values.url, io);
    const identity = await readIdentity(values.key, io.env, reporter);
    const heard = (delivery: Delivery) => reportBeside(delivery, reporter);
    const transport = await openAgentTransport({ identity, http, takeOver, reporter, heard }, io);
    try {
      const asked = transport.ask({ to, ask: payload, type, seal, timeout_ms: timeoutSeconds * 1000, wait_online_ms });
      const text = waitingText(`the reply of ${to}, up to ${timeoutSeconds} s`, to, wait_online_ms);
      const reply = await reporter.whileWaiting(text, asked);
      const line = json ? { ok: true, ...reply, via: transport.name } : (reply.envelope as { payload: object }).payload;
      await writeLine(io.stdout, jsonLine(line));
    } finally {
      await transport.close();
    }
    return EXIT.ok;
  },
};

/** What came in and is not the reply, such as an open one to a sealed question: no other process of the agent gets it. */
function reportBeside(delivery: Delivery, reporter: Reporter): void {
  const { from, type, payload, sealed } = delivery;
  const how = sealed ? "sealed" : "not sealed";
  const text = `Not the reply: ${type} of ${from}, ${how}: ${jsonLine(payload)}`;
  reporter.report("delivery", text, deliveryMembers(delivery), "yellow");
}
