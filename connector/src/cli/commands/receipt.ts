import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import { EXIT, Failure, usageError } from "../failure.ts";
import type { Command } from "../io.ts";
import { jsonLine, Reporter, writeLine } from "../io.ts";
import { readIdentity, requireKey } from "../key-file.ts";
import { RelayHttp } from "../relay-http.ts";
import { listenerTransport } from "../sharing/client.ts";
import { controlPlace } from "../sharing/socket.ts";

export const receipt: Command = {
  usage: "<session> [options]",
  options: AGENT_OPTIONS,
  examples: [
    "relay receipt ses_01h2x3y4z5a6b7c8d9e0f1g2h3 > receipt.json",
    "relay receipt ses_01h2x3y4z5a6b7c8d9e0f1g2h3 --key bob.json",
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, AGENT_OPTIONS);
    const [sessionId, ...others] = positionals;
    if (sessionId === undefined || others.length > 0) throw usageError("Name one session: ses_….");
    const reporter = new Reporter(io.stderr, values.json === true);
    const signing = requireKey(await readIdentity(values.key, io.env, reporter));
    const { websocketUrl } = new RelayHttp(values.url, io);
    const found = listenerTransport(controlPlace(signing.agent, websocketUrl, io, reporter));
    const listener = await reporter.whileWaiting("Waiting for the process that holds it.", found);
    if (listener === undefined) throw notListening(signing.agent);
    try {
      await writeLine(io.stdout, jsonLine(await listener.receipt(sessionId)));
    } finally {
      await listener.close();
    }
    return EXIT.ok;
  },
};

function notListening(agent: string): Failure {
  return new Failure(
    "receipt_incomplete",
    `No relay listen or relay mcp of ${agent} runs here, so nothing holds the envelopes.`,
    "The relay keeps no envelopes. Run relay listen from before the request until after the decision, and run relay receipt beside it.",
  );
}
