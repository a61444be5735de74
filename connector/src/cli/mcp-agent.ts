import { Connector } from "../connector.ts";
import { type LookUps, McpAgent } from "../mcp/agent.ts";
import type { Make } from "../mcp/late-agent.ts";
import { reportConnection } from "./connection-reports.ts";
import { hintOf } from "./failure.ts";
import { readIdentity, requireKey } from "./identity.ts";
import type { Io } from "./io.ts";
import type { SigningAgent } from "./key-file.ts";
import { RelayHttp } from "./relay-http.ts";
import type { Reporter } from "./reporter.ts";
import { isSuperseded, SharedConnection } from "./sharing/shared-connection.ts";
import { controlPlace } from "./sharing/socket.ts";
import { readTrust } from "./trust.ts";

/** Options of `relay mcp` that are of its agent. */
export interface McpAgentOptions {
  readonly key: string | undefined;
  readonly json: boolean;
  readonly takeOver: boolean;
  /** Files. */
  readonly trust: readonly string[] | undefined;
  readonly requireVerified: boolean | undefined;
  readonly maxDeliveryAgeMs: number | undefined;
}

/** Makes agents of `relay mcp`, of what its files have then. @throws {Failure | RelayError} as readIdentity and readTrust do. */
export function mcpAgents(options: McpAgentOptions, http: RelayHttp, reporter: Reporter, io: Io): Make {
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
