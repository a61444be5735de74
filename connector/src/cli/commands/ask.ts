import type { Delivery } from "../../types.ts";
import {
  AGENT_OPTIONS,
  MAX_WAIT_S,
  readArguments,
  readPayload,
  targetOf,
  waitingText,
  waitOnlineMs,
  wholeNumber,
} from "../arguments.ts";
import { EXIT, usageError } from "../failure.ts";
import type { Command } from "../io.ts";
import { deliveryMembers, jsonLine, Reporter, writeLine } from "../io.ts";
import { readIdentity } from "../key-file.ts";
import { RelayHttp } from "../relay-http.ts";
import { openAgentTransport } from "../transport.ts";

const DEFAULT_TIMEOUT_S = 30;

export const ask: Command = {
  help: `relay ask <to> [payload]: send a message, and print the reply to it.

  relay ask agent://bob '{"message":"How warm is it?"}' --timeout 30

The target is an agent id, or its name alone: bob. The payload is a JSON object: the second word, or standard input (-, or no second word).
Standard output has the payload of the reply as one line of JSON; with --json the whole reply, as relay listen prints it.

  --key FILE             the agent's key file; or RELAY_KEY_FILE
  --url URL              the relay; or RELAY_URL; default http://127.0.0.1:8080
  --timeout SECONDS      how long the reply may take, from when the agent is online and the target, which have times of their own (to come
                         online 15 s, --wait-online); default ${DEFAULT_TIMEOUT_S}; none in time is exit code 5
  --type TYPE            message.<word> instead of message.send
  --wait-online SECONDS  wait so long for the target to come online; if it does not, nothing is sent (exit code 5)
  --seal                 encrypt it to the target, whose reply must be sealed, too; see relay send --help. One that is not
                         does not count, and is told of on standard error
  --take-over            ask although the agent is online elsewhere, which ends that connection
  --json                 the reply with who vouches for it, as one line of JSON

A reply is a message.reply of the asked agent in the task of the question: relay listen --exec … --reply sends one. It comes over a
connection, through a relay listen of the same agent on this machine where one runs, which then does not print it; never over HTTP.
A restart of the relay meanwhile ends no question that it can have: its reply counts until the time is over, over either connection.
A target that is not online is told at once (exit code 5): the relay stores no contents. One that has no reply, since its program failed, too,
sends none, and the time runs out (exit code 5): errors are replies of the target's own.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      timeout: { type: "string" },
      type: { type: "string" },
      "wait-online": { type: "string" },
      seal: { type: "boolean" },
      "take-over": { type: "boolean" },
    });
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
