import { finished, type Readable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { Connector } from "../../connector.ts";
import { serve } from "../../mcp/server.ts";
import { VERSION } from "../../version.ts";
import { AGENT_OPTIONS, deliveryAgeMs, readArguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { reportConnection } from "../connection-reports.ts";
import { EXIT } from "../exit-codes.ts";
import { usageError } from "../failure.ts";
import { readIdentity, requireKey } from "../identity.ts";
import { RelayHttp } from "../relay-http.ts";
import { Reporter } from "../reporter.ts";
import { readTrust } from "../trust.ts";

export const mcp: Command = {
  help: `relay mcp: offer the relay to a model as MCP tools, over standard input and output.

  relay mcp --key bob.key.json

An MCP client starts it; it is not meant for a terminal. The client's model is then the agent of the key: it sends and waits
for messages, requests, approves and rejects sessions, and looks up who is online. It ends when the client closes standard
input. An agent has one connection: do not run relay listen for the same agent.

  --key FILE          the agent's key file; or RELAY_KEY_FILE
  --url URL           the relay; or RELAY_URL; default http://127.0.0.1:8080
  --trust FILE        public records of issuers (as relay issuer new prints them), or of other agents' keys (as relay keygen does):
                      whom to believe, whatever the relay says; beside the trusted_issuers of the key file
  --require-verified  drop whatever is not verified as agent
  --max-age SECONDS   drop what was signed longer ago; default 600, 0 = no limit
  --take-over         start although the agent is online elsewhere, which ends that connection
  --json              JSON lines on standard error
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      "take-over": { type: "boolean" },
      trust: { type: "string", multiple: true },
      "require-verified": { type: "boolean" },
      "max-age": { type: "string" },
    });
    if (positionals.length > 0) throw usageError("mcp takes options only.");
    const { json = false, "require-verified": requireVerified } = values;
    const takeOver = values["take-over"];
    const maxDeliveryAgeMs = deliveryAgeMs(values["max-age"]);
    const reporter = new Reporter(io.stderr, json);
    const http = new RelayHttp(values.url, io);
    const signing = requireKey(await readIdentity(values.key, io.env, reporter));
    const trust = await readTrust(values.trust ?? [], signing.trust.issuers, io);

    // The address as it was given: the address of a websocket would not tell the base path of the signing manifest.
    const connector = new Connector({ url: http.url, ...signing, trust, requireVerified, maxDeliveryAgeMs, takeOver });
    reportConnection(connector, http.websocketUrl, reporter, json);
    connector.on("state", (state) => {
      if (state.status !== "closed" || state.error === undefined) return;
      const { code, message, hint, retry } = state.error;
      reporter.report("closed", `${message} ${hint}`, { code, retry }, "red");
    });
    await serve({
      connector,
      presenceOf: (agentId, signal) => new RelayHttp(values.url, { env: io.env, signal }).presence(agentId),
      version: VERSION,
      transport: new StdioServerTransport(io.stdin, io.stdout),
      signal: AbortSignal.any([io.signal, endOf(io.stdin)]),
    });
    return EXIT.ok;
  },
};

/** Aborted when the stream ends or fails. */
function endOf(stdin: Readable): AbortSignal {
  const ended = new AbortController();
  finished(stdin, () => ended.abort());
  return ended.signal;
}
