import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { finished, type Readable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { Connector } from "../../connector.ts";
import { LateAgent, type LookUps, type Make, McpAgent } from "../../mcp/agent.ts";
import type { Transport } from "../../mcp/calls.ts";
import { type HttpServerOptions, HttpSessions, McpHttpServer } from "../../mcp/http.ts";
import { serve } from "../../mcp/server.ts";
import { VERSION } from "../../version.ts";
import {
  AGENT_OPTIONS,
  deliveryAgeMs,
  httpAddress,
  readArguments,
  TAKE_OVER,
  TRUST_OPTIONS,
  unexpectedWord,
} from "../arguments.ts";
import { reportConnection } from "../connection-reports.ts";
import { EXIT, Failure, failureOf, hintOf, usageError } from "../failure.ts";
import { textIn, writePrivateText } from "../files.ts";
import type { Command, Options } from "../io.ts";
import { type Io, Reporter } from "../io.ts";
import { keyFileOf, readIdentity, requireKey, type SigningAgent } from "../key-file.ts";
import { readTrust } from "../records.ts";
import { RelayHttp } from "../relay-http.ts";
import { isSuperseded, SharedConnection } from "../sharing/shared-connection.ts";
import { controlPlace } from "../sharing/socket.ts";

const OPTIONS = {
  ...AGENT_OPTIONS,
  ...TRUST_OPTIONS,
  http: { type: "string", value: "HOST:PORT", help: "serve MCP over HTTP there, at /mcp" },
  "http-name": { type: "string", value: "NAME", multiple: true, help: "also serve machines that use this name" },
  "token-file": { type: "string", value: "FILE", help: "the token of HTTP clients; default <key file>.mcp-token" },
  ...TAKE_OVER,
} as const satisfies Options;

export const mcp: Command = {
  usage: "[options]",
  options: OPTIONS,
  examples: ["relay mcp --key bob.json", "relay mcp --key bob.json --http 127.0.0.1:7300"],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
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

/** Options of `relay mcp` that are of its agent. */
interface McpAgentOptions {
  readonly key: string | undefined;
  readonly json: boolean;
  readonly takeOver: boolean;
  /** Files. */
  readonly trust: readonly string[] | undefined;
  readonly requireVerified: boolean | undefined;
  readonly maxDeliveryAgeMs: number | undefined;
}

/** Makes agents of `relay mcp`, of what its files have then. @throws {Failure | RelayError} as readIdentity and readTrust do. */
function mcpAgents(options: McpAgentOptions, http: RelayHttp, reporter: Reporter, io: Io): Make {
  let made: string | undefined;
  return async (former) => {
    const signing = requireKey(await readIdentity(options.key, io.env, reporter));
    const present = JSON.stringify([signing, await signing.credential?.()]);
    // The other may have ended since.
    const isOver = former?.connector.state.status === "closed" || (former && isSuperseded(former.connector));
    const stays = former !== undefined && !isOver && present === made;
    const agent = stays ? former : await mcpAgent(signing, options, http, reporter, io, former);
    made = present;
    return agent;
  };
}

async function mcpAgent(
  signing: SigningAgent,
  options: McpAgentOptions,
  http: RelayHttp,
  reporter: Reporter,
  io: Io,
  former: McpAgent | undefined,
): Promise<McpAgent> {
  const { json, requireVerified, maxDeliveryAgeMs } = options;
  const trust = await readTrust(options.trust ?? [], signing.trust.issuers, io);
  const open = (takesOver: boolean) => {
    // The address as it was given: the address of a websocket would not tell the base path of the signing manifest.
    const own = new Connector({
      ...{ url: http.url, httpUrl: http.httpUrl, ...signing, trust },
      ...{ requireVerified, maxDeliveryAgeMs, takeOver: takesOver, startTimeoutMs: Infinity },
    });
    reportConnection(own, http.websocketUrl, reporter, json);
    return own;
  };
  // Two servers that took over at each call would end each other's connection without end.
  const takeOver = options.takeOver && former?.wasOnline !== true;
  const believesAsOthers = !options.trust && !requireVerified && maxDeliveryAgeMs === undefined;
  const place = controlPlace(signing.agent, http.websocketUrl, io, reporter);
  const shares = (holder: "this" | "other") => {
    const whose = holder === "this" ? "this process" : "another process";
    const text = `${signing.agent} has several processes here, which share the connection of ${whose}: each gets every message, and may answer it.`;
    reporter.report("shared", text, { agent_id: signing.agent, holder }, "yellow");
  };
  const connector = new SharedConnection({ place, takeOver, mayFollow: believesAsOthers, shares, open });
  connector.on("state", (state) => {
    if (state.status !== "closed" || state.error === undefined) return;
    const { code, message, retry } = state.error;
    reporter.report("closed", `${message} ${hintOf(state.error)}`, { code, retry }, "red");
  });
  const asked = (signal: AbortSignal) => new RelayHttp(http.url, { env: io.env, signal });
  const lookUps: LookUps = {
    presenceOf: (agentId, signal) => asked(signal).presence(agentId),
    sessionOf: (sessionId, signal) => asked(signal).session(sessionId),
  };
  return new McpAgent(connector, lookUps, former);
}

/** How `relay mcp` offers its tools to clients. */

const MAX_LINE_BYTES = 10_485_760;

interface Listening extends HttpServerOptions {
  /** Of the token, for people. */
  readonly place: string;
}

/** Until standard input ends. @throws {Failure} `failed` for a line that no message can be as long as. */
async function serveStdio(agent: LateAgent, reporter: Reporter, io: Io): Promise<void> {
  const transport = new StdioServerTransport(io.stdin, io.stdout, { maxBufferSize: MAX_LINE_BYTES });
  // Every answer that standard output does not take at once waits for it with a listener of its own.
  io.stdout.setMaxListeners(0);
  let isTooLong = false;
  transport.onerror = ({ message }) => {
    isTooLong ||= message.startsWith("ReadBuffer exceeded");
    if (!isTooLong) reporter.warn("A line on standard input is not a message of JSON-RPC. It was ignored.");
  };
  const { ended } = await serve(agent, transport, VERSION);
  const signal = AbortSignal.any([io.signal, endOf(io.stdin)]);
  signal.addEventListener("abort", () => void transport.close());
  if (signal.aborted) await transport.close();
  await ended;
  if (isTooLong)
    throw new Failure("failed", `A line on standard input has over ${MAX_LINE_BYTES} bytes.`, "Send shorter messages.");
}

/** Until the signal. @throws {Failure} `failed` when it cannot listen. */
async function serveHttp(
  agent: LateAgent,
  { place, ...options }: Listening,
  reporter: Reporter,
  io: Io,
): Promise<void> {
  const sessions = new HttpSessions((session) => {
    const { transport, calls } = session;
    return serve(agent, transport as Transport, VERSION, calls, () => session.isBehind);
  });
  const server = new McpHttpServer(sessions, options);
  const url = await server.start().catch(({ code }) => {
    throw new Failure(
      "failed",
      `relay mcp cannot listen at the address of --http (${code}).`,
      "Choose another port with --http.",
    );
  });
  reporter.report("mcp_http", `MCP at ${url}; its token: ${place}`, { url, token_place: place }, "green");
  if (!io.signal.aborted) await once(io.signal, "abort");
  await server.stop();
}

/** Aborted when the stream ends or fails. */
function endOf(stdin: Readable): AbortSignal {
  const ended = new AbortController();
  finished(stdin, () => ended.abort());
  return ended.signal;
}

/** No link is followed, and no named pipe waited for; Windows has neither flag. */
const AS_IT_IS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const TOKEN_BYTES = 32;
const TOKEN = /^[!-~]{32,512}$/;

interface McpToken {
  readonly token: string;
  /** Where a person finds it. */
  readonly place: string;
}

/**
 * The token that HTTP clients of `relay mcp` need: RELAY_MCP_TOKEN, else that of a file, which is made when there is none.
 * @param own the id of the user of this process; undefined on systems without.
 * @throws {Failure} `usage`, `failed`.
 */
export async function mcpToken(
  file: string | undefined,
  env: Io["env"],
  own: number | undefined = process.getuid?.(),
): Promise<McpToken> {
  if (env.RELAY_MCP_TOKEN) return { token: checked(env.RELAY_MCP_TOKEN, "RELAY_MCP_TOKEN"), place: "RELAY_MCP_TOKEN" };
  if (file === undefined)
    throw usageError("--http needs a token.", "Name a file with --token-file, or set RELAY_MCP_TOKEN.");
  const token = (await tokenOf(file, own)) ?? (await newToken(file));
  return { token, place: file };
}

/** Of one opened file: what is looked at cannot be exchanged before it is read. Undefined where there is none. */
async function tokenOf(file: string, own: number | undefined): Promise<string | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, AS_IT_IS);
    await requireOwn(handle, file, own);
    return checked(textIn(await handle.readFile(), file).trim(), file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP") throw chosenByOthers(file, "a link");
    throw error instanceof Failure ? error : usageError(`${file} cannot be read (${code}).`);
  } finally {
    await handle?.close();
  }
}

/**
 * Whoever made the file, or can read it, knows the token; whoever made a link to it chose a file whose content they know.
 * @throws {Failure} `usage`.
 */
async function requireOwn(handle: FileHandle, file: string, own: number | undefined): Promise<void> {
  const found = await handle.stat();
  if (!found.isFile()) throw chosenByOthers(file, "not a regular file");
  if (own === undefined) return;
  if (found.uid !== own)
    throw usageError(`${file} belongs to another user, who knows its token.`, `Name a file that is yours. ${MOUNTED}`);
  if (found.nlink !== 1) throw chosenByOthers(file, "one of several links to a file");
  if ((found.mode & 0o077) === 0) return;
  const hint = `Remove it, and relay mcp makes another. If nobody else can have used it, run: chmod 600 ${file}. ${MOUNTED}`;
  throw usageError(`Other users may know the token of ${file}, or have chosen it.`, hint);
}

/** A file that an orchestrator mounts is a link, and others may read it. */
const MOUNTED = "For a secret that is mounted, as in Kubernetes, set RELAY_MCP_TOKEN with secretKeyRef.";

function chosenByOthers(file: string, kind: string): Failure {
  return usageError(
    `${file} is ${kind}. Another user may have chosen its token.`,
    `Name a regular file that is yours. ${MOUNTED}`,
  );
}

async function newToken(file: string): Promise<string> {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  await writePrivateText(file, token);
  return token;
}

function checked(token: string, place: string): string {
  if (TOKEN.test(token)) return token;
  throw usageError(`${place} does not hold a token.`, "A token has 32 to 512 characters, without spaces.");
}
