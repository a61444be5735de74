import { finished, type Readable } from "node:stream";
import { Connector } from "../../connector.ts";
import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { Failure, usage } from "../failure.ts";
import { readIdentity, signatory } from "../identity.ts";
import { narrate } from "../listening.ts";
import { Voice } from "../output.ts";
import { RelayHttp } from "../relay-http.ts";
import { readTrust } from "../trust.ts";
import { version } from "../version.ts";

export const command: Command = {
  help: `relay mcp: offer the relay to a model as MCP tools, over standard input and output.

  relay mcp --key bob.key.json

An MCP client starts it and speaks with it; in a terminal it is of little use. The client's model is then the agent of the
key: it sends and waits for messages, requests, approves and rejects sessions, and looks up who is online. It ends when the
client closes standard input. The agent has one connection: run no relay listen for it beside this.

  --key FILE          the agent's key file; or RELAY_KEY_FILE
  --url URL           the relay; or RELAY_URL; http://127.0.0.1:8080 when left out
  --trust FILE        public records of other agents (as relay keygen prints them), to check their signatures here too
  --require-verified  drop what is signed neither by a gateway nor with a key of --trust
  --json              JSON lines on standard error

It needs two more packages: npm install @modelcontextprotocol/sdk zod
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      trust: { type: "string", multiple: true },
      "require-verified": { type: "boolean" },
    });
    if (positionals.length > 0) throw usage("mcp takes options only.");
    const { json = false, "require-verified": requireVerified } = values;
    const voice = new Voice(io.stderr, json);
    const http = new RelayHttp(values.url, io);
    const who = signatory(await readIdentity(values.key, io.env, voice));
    const trust = await readTrust(values.trust ?? []);
    const { serve, StdioServerTransport } = await loadServer();

    // As it was given: the websocket's address alone does not tell where the signing manifest is.
    const connector = new Connector({ url: http.url, ...who, trust, requireVerified });
    narrate(connector, http.websocketUrl, voice, json);
    connector.on("state", (state) => {
      if (state.status !== "closed" || state.error === undefined) return;
      const { code, message, hint } = state.error;
      voice.say("closed", `${message} ${hint}`, { code }, "red");
    });
    await serve({
      connector,
      get: (path, signal) => new RelayHttp(values.url, { env: io.env, signal }).get(path),
      version: await version(),
      transport: new StdioServerTransport(io.stdin, io.stdout),
      signal: AbortSignal.any([io.signal, endOf(io.stdin)]),
    });
    return EXIT.ok;
  },
};

/** The packages it needs are optional: who only sends and listens does not have them. */
async function loadServer() {
  try {
    const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
    return { StdioServerTransport, ...(await import("../../mcp/server.ts")) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    const hint = "Run: npm install @modelcontextprotocol/sdk zod";
    throw new Failure("failed", "relay mcp needs two packages that are not installed.", hint);
  }
}

/** Aborted when the stream ends or breaks. */
function endOf(stdin: Readable): AbortSignal {
  const ended = new AbortController();
  finished(stdin, () => ended.abort());
  return ended.signal;
}
