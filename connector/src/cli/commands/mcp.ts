import { once } from "node:events";
import { finished, type Readable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { Connector } from "../../connector.ts";
import { McpAgent } from "../../mcp/agent.ts";
import type { Transport } from "../../mcp/calls/client-transport.ts";
import { type HttpServerOptions, McpHttpServer } from "../../mcp/http/server.ts";
import { HttpSessions } from "../../mcp/http/sessions.ts";
import { serve } from "../../mcp/server.ts";
import { VERSION } from "../../version.ts";
import { AGENT_OPTIONS, deliveryAgeMs, readArguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { reportConnection } from "../connection-reports.ts";
import { EXIT } from "../exit-codes.ts";
import { Failure, usageError } from "../failure.ts";
import { httpAddress } from "../http-address.ts";
import { readIdentity, requireKey } from "../identity.ts";
import type { Io } from "../io.ts";
import { mcpToken } from "../mcp-token.ts";
import { RelayHttp } from "../relay-http.ts";
import { Reporter } from "../reporter.ts";
import { SharedConnection } from "../sharing/shared-connection.ts";
import { readTrust } from "../trust.ts";

const MAX_LINE_BYTES = 10_485_760;

interface Listening extends HttpServerOptions {
  /** Of the token, for people. */
  readonly place: string;
}

export const mcp: Command = {
  help: `relay mcp: offer the relay to a model as MCP tools, over standard input and output, or over HTTP.

  relay mcp --key bob.key.json
  relay mcp --key bob.key.json --http 127.0.0.1:7300

Over standard input an MCP client starts it; it is not meant for a terminal. The client's model is then the agent of the key: it sends and waits
for messages, requests, approves and rejects sessions, and looks up who is online. It ends when the client closes standard
input. Beside a relay listen or another relay mcp of the same agent it shares that one's connection: it gets every message that comes from then
on, whichever others get it too, and takes over when that one ends, after a second or so in which the agent is offline. It shares none
with --trust, --require-verified or --max-age, since whom to believe is decided where the connection is.

  --key FILE          the agent's key file; or RELAY_KEY_FILE
  --url URL           the relay; or RELAY_URL; default http://127.0.0.1:8080
  --trust FILE        public records of issuers (as relay issuer new prints them), or of other agents' keys (as relay keygen does):
                      whom to believe, whatever the relay says; beside the trusted_issuers of the key file
  --require-verified  drop whatever is not verified as agent
  --max-age SECONDS   drop what was signed longer ago; default 600, 0 = any age
  --take-over         start although the agent is online elsewhere, which ends that connection
  --http HOST:PORT    serve MCP's Streamable HTTP at http://HOST:PORT/mcp until it is stopped; port 0: one that is free
  --http-name NAME    listen for other machines, too, which call this one so; put TLS in front of it
  --token-file FILE   what clients send as Authorization: Bearer; made when it is missing; default: the key file's name with
                      .mcp-token; or RELAY_MCP_TOKEN
  --json              JSON lines on standard error

The sessions of one HTTP server share the agent's messages: each is returned once, to whichever asks first.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      "take-over": { type: "boolean" },
      trust: { type: "string", multiple: true },
      "require-verified": { type: "boolean" },
      "max-age": { type: "string" },
      http: { type: "string" },
      "http-name": { type: "string", multiple: true },
      "token-file": { type: "string" },
    });
    if (positionals.length > 0) throw usageError("mcp takes options only.");
    const { json = false, "require-verified": requireVerified } = values;
    const takeOver = values["take-over"] === true;
    const maxDeliveryAgeMs = deliveryAgeMs(values["max-age"]);
    const reporter = new Reporter(io.stderr, json);
    const http = new RelayHttp(values.url, io);
    const signing = requireKey(await readIdentity(values.key, io.env, reporter));
    const trust = await readTrust(values.trust ?? [], signing.trust.issuers, io);

    const file = values["token-file"] ?? keyFileToken(values.key ?? io.env.RELAY_KEY_FILE);
    const names = values["http-name"] ?? [];
    if (values.http === undefined && (values["token-file"] !== undefined || names.length > 0))
      throw usageError("--token-file and --http-name need --http.");
    const address = values.http === undefined ? undefined : httpAddress(values.http, names);
    const listening = address && { ...address, names, ...(await mcpToken(file, io.env, reporter)) };

    const open = (takeOver: boolean) => {
      // The address as it was given: the address of a websocket would not tell the base path of the signing manifest.
      const options = { ...signing, trust, requireVerified, maxDeliveryAgeMs, takeOver };
      const own = new Connector({ url: http.url, ...options });
      reportConnection(own, http.websocketUrl, reporter, json);
      return own;
    };
    const believesAsOthers = !values.trust && !requireVerified && maxDeliveryAgeMs === undefined;
    const { websocketUrl } = http;
    const shared = { signing, websocketUrl, takeOver, mayFollow: believesAsOthers, open, io };
    const connector = new SharedConnection(shared);
    connector.on("state", (state) => {
      if (state.status !== "closed" || state.error === undefined) return;
      const { code, message, hint, retry } = state.error;
      reporter.report("closed", `${message} ${hint}`, { code, retry }, "red");
    });
    const agent = new McpAgent(connector, (agentId, signal) =>
      new RelayHttp(values.url, { env: io.env, signal }).presence(agentId),
    );
    agent.start();
    try {
      await (listening === undefined ? serveStdio(agent, reporter, io) : serveHttp(agent, listening, reporter, io));
    } finally {
      await connector.close();
    }
    return EXIT.ok;
  },
};

/** Until standard input ends. @throws {Failure} `failed` for a line that no message can be as long as. */
async function serveStdio(agent: McpAgent, reporter: Reporter, io: Io): Promise<void> {
  const transport = new StdioServerTransport(io.stdin, io.stdout, { maxBufferSize: MAX_LINE_BYTES });
  // Every answer that standard output does not take at once waits for it with a listener of its own.
  io.stdout.setMaxListeners(0);
  let isTooLong = false;
  transport.onerror = ({ message }) => {
    isTooLong ||= message.startsWith("ReadBuffer exceeded");
    if (!isTooLong) reporter.warn("A line on standard input is no message of JSON-RPC: it was ignored.");
  };
  const { ended } = await serve(agent, transport, VERSION);
  const signal = AbortSignal.any([io.signal, endOf(io.stdin)]);
  signal.addEventListener("abort", () => void transport.close());
  if (signal.aborted) await transport.close();
  await ended;
  if (isTooLong) throw new Failure("failed", `A line has over ${MAX_LINE_BYTES} bytes.`, "A message is far shorter.");
}

/** Until the signal. @throws {Failure} `failed` when it cannot listen. */
async function serveHttp(agent: McpAgent, { place, ...options }: Listening, reporter: Reporter, io: Io): Promise<void> {
  const sessions = new HttpSessions(({ transport, calls }) => serve(agent, transport as Transport, VERSION, calls));
  const server = new McpHttpServer(sessions, options);
  const url = await server.start().catch(({ code }) => {
    throw new Failure("failed", `It cannot listen there (${code}).`, "Choose another port with --http.");
  });
  reporter.report("mcp_http", `MCP at ${url}; its token: ${place}`, { url, token_place: place }, "green");
  if (!io.signal.aborted) await once(io.signal, "abort");
  await server.stop();
}

/** Beside the key file. */
function keyFileToken(keyFile: string | undefined): string | undefined {
  return keyFile ? `${keyFile}.mcp-token` : undefined;
}

/** Aborted when the stream ends or fails. */
function endOf(stdin: Readable): AbortSignal {
  const ended = new AbortController();
  finished(stdin, () => ended.abort());
  return ended.signal;
}
