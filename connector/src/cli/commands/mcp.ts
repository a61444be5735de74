import { LateAgent, type Make } from "../../mcp/late-agent.ts";
import { AGENT_OPTIONS, deliveryAgeMs, readArguments, unexpectedWord } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { Failure, failureOf, usageError } from "../failure.ts";
import { httpAddress } from "../http-address.ts";
import { keyFileOf, readIdentity, requireKey } from "../identity.ts";
import type { Io } from "../io.ts";
import { mcpAgents } from "../mcp-agent.ts";
import { type Listening, serveHttp, serveStdio } from "../mcp-serving.ts";
import { mcpToken } from "../mcp-token.ts";
import { RelayHttp } from "../relay-http.ts";
import { Reporter } from "../reporter.ts";

export const mcp: Command = {
  help: `relay mcp: offer the relay to a model as MCP tools, over standard input and output, or over HTTP.

  relay mcp --key bob.key.json
  relay mcp --key bob.key.json --http 127.0.0.1:7300

Over standard input an MCP client starts it; it is not meant for a terminal. The client's model is then the agent of the key: it sends and waits
for messages, requests, approves and rejects sessions, and looks up who is online. It ends when the client closes standard
input. While the key cannot be used every tool says why, and each call reads the file again; with --http it ends instead.

Beside a relay listen or another relay mcp of the same agent it shares that one's connection: it gets every message that comes from then
on, whichever others get it too, and takes over when that one ends, after a second or so in which the agent is offline. It shares none
with --trust, --require-verified or --max-age, since whom to believe is decided where the connection is.

  --key FILE          the agent's key file; or RELAY_KEY_FILE
  --url URL           the relay; or RELAY_URL; default http://127.0.0.1:8080
  --trust FILE        public records of issuers (as relay issuer new prints them), of other agents' keys (as relay keygen does), or of
                      gateways (gateway_keys of the relay's signing manifest): whom to believe, whatever the relay says; beside
                      the trusted_issuers of the key file
  --require-verified  drop whatever is not verified as agent, nor as gateway by one of --trust
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
    if (positionals[0] !== undefined) throw unexpectedWord("mcp", "options only", positionals[0]);
    const { key, url, json = false, trust, "require-verified": requireVerified } = values;
    const maxDeliveryAgeMs = deliveryAgeMs(values["max-age"]);
    const names = values["http-name"] ?? [];
    if (values.http === undefined && (values["token-file"] !== undefined || names.length > 0))
      throw usageError("--token-file and --http-name need --http.");
    const address = values.http === undefined ? undefined : httpAddress(values.http, names);
    const reporter = new Reporter(io.stderr, json);
    const takeOver = values["take-over"] === true;
    const options = { key, json, takeOver, trust, requireVerified, maxDeliveryAgeMs };
    const atRelay = () => {
      const http = new RelayHttp(url, io);
      if (http.isDefault)
        reporter.warn(`Neither --url nor RELAY_URL says which relay: ${http.url}.`, { url: http.url });
      return mcpAgents(options, http, reporter, io);
    };
    const file = keyFileOf(key, io.env);
    if (address === undefined) return await overStdio(atRelay, file, reporter, io);
    const make = atRelay();
    // Before it connects: who starts a server sees how it ends.
    requireKey(await readIdentity(key, io.env, reporter));
    const token = await mcpToken(values["token-file"] ?? keyFileToken(file), io.env);
    return await overHttp(make, { ...address, names, ...token }, reporter, io);
  },
};

/**
 * A client shows of a process that ended that it has: while there is no agent, such as without a key or an address that can be
 * used, the tools say why, and each call looks again.
 */
async function overStdio(
  atRelay: () => Make,
  keyFile: string | undefined,
  reporter: Reporter,
  io: Io,
): Promise<number> {
  let make: Make | undefined;
  let failure: Failure | undefined;
  const agent = new LateAgent(async (former) => {
    try {
      make ??= atRelay();
      const made = await make(former);
      failure = undefined;
      return made;
    } catch (error) {
      failure = mendable(failureOf(error), make !== undefined && keyFile !== undefined);
      throw failure;
    }
  });
  await agent.present().catch(() => failure && reporter.fail(failure));
  try {
    await serveStdio(agent, reporter, io);
  } finally {
    await agent.close();
  }
  return failure?.exitCode ?? EXIT.ok;
}

/** A file is read anew at each call; the environment of a process stays as it is. */
function mendable(failure: Failure, isOfFile: boolean): Failure {
  const { code, message, hint, retry } = failure;
  const first = isOfFile
    ? "A person must correct this. Then call again: relay mcp needs no restart."
    : "A person must correct this, and start relay mcp again.";
  return new Failure(code, message, `${first} ${hint}`, { retry });
}

async function overHttp(make: Make, listening: Listening, reporter: Reporter, io: Io): Promise<number> {
  const agent = new LateAgent(make);
  try {
    await agent.present();
    await serveHttp(agent, listening, reporter, io);
  } finally {
    await agent.close();
  }
  return EXIT.ok;
}

/** Beside the key file. */
function keyFileToken(keyFile: string | undefined): string | undefined {
  return keyFile ? `${keyFile}.mcp-token` : undefined;
}
