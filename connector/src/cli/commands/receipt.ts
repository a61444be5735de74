import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import { EXIT, Failure, usageError } from "../failure.ts";
import type { Command } from "../io.ts";
import { jsonLine, Reporter, writeLine } from "../io.ts";
import { readIdentity, requireKey } from "../key-file.ts";
import { RelayHttp } from "../relay-http.ts";
import { listenerTransport } from "../sharing/client.ts";
import { controlPlace } from "../sharing/socket.ts";

export const receipt: Command = {
  help: `relay receipt SESSION: print the receipt of a session that was decided.

  relay receipt ses_01h2x3y4z5a6b7c8d9e0f1g2h3 --key bob.json > receipt.json

  --key FILE  the agent's key file; or RELAY_KEY_FILE
  --url URL   the relay; or RELAY_URL; default http://127.0.0.1:8080
  --json      messages on standard error as JSON lines

It comes from the relay listen or relay mcp of the same agent that runs on this machine, which holds the request and the decision
while it runs: one line of JSON, both envelopes and the credentials of both keys. Either of the two agents has it, where it was
there all the while; keys without a credential have none. Whoever has the issuers' records checks it: relay verify receipt.json --issuer acme.json
`,
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
    `No relay listen or relay mcp of ${agent} runs here: nothing holds the envelopes.`,
    "The relay keeps none. Let one of them run from before the request until after the decision, and ask while it runs.",
  );
}
