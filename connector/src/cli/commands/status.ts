import { AGENT_OPTIONS, readArguments, targetOf } from "../arguments.ts";
import { EXIT, type Failure, failureOf } from "../failure.ts";
import type { Command, Options } from "../io.ts";
import { jsonLine, type Line, type Style, styled, writeLine } from "../io.ts";
import { readKeyFile } from "../key-file.ts";
import { RelayHttp } from "../relay-http.ts";

type Members = Readonly<Record<string, unknown>>;

const OPTIONS = {
  key: { type: "string", value: "FILE", help: "also show the agent of this key file" },
  url: AGENT_OPTIONS.url,
} as const satisfies Options;

export const status: Command = {
  usage: "[<agent> | <session>]... [options]",
  options: OPTIONS,
  examples: ["relay status agent://alice agent://bob", "relay status ses_01h2x3y4z5a6b7c8d9e0f1g2h3"],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
    const own = values.key === undefined ? [] : [(await readKeyFile(values.key)).agent];
    const isSession = (word: string) => word.startsWith(SESSION_PREFIX);
    const names = [...own, ...positionals.filter((word) => !isSession(word)).map(targetOf)];
    const http = new RelayHttp(values.url, io);
    const [relay, agents, sessions] = await Promise.all([
      looked(http.get("/api/onboarding/online-agents")),
      Promise.all(names.map((agent_id) => looked(http.presence(agent_id), { agent_id }))),
      Promise.all(positionals.filter(isSession).map((session_id) => looked(http.session(session_id), { session_id }))),
    ]);
    const all = [relay, ...agents, ...sessions];
    const failure = all.find((one) => one.failure)?.failure;
    if (failure !== undefined && all.every((one) => one.failure)) throw failure;

    if (values.json) {
      const answers = { relay: relay.answer, agents: agents.map(({ answer }) => answer) };
      const asked = sessions.length > 0 && { sessions: sessions.map(({ answer }) => answer) };
      await writeLine(io.stdout, jsonLine({ ok: failure === undefined, ...answers, ...asked }));
    } else {
      for (const session of sessions) await writeLine(io.stdout, failureText(session) ?? sessionText(session.answer));
      for (const agent of agents) await writeLine(io.stdout, failureText(agent) ?? agentText(agent.answer));
      await writeLine(io.stdout, failureText(relay) ?? relayText(relay.answer, http.baseUrl));
    }
    return failure?.exitCode ?? EXIT.ok;
  },
};

interface Looked {
  /** The relay's; of a failure what programs are told in its place. */
  readonly answer: Members;
  readonly failure?: Failure;
}

/** On a cluster, the part that one agent lies in may be out of reach. @param of what a failure is told with. */
async function looked(asked: Promise<Members>, of: Members = {}): Promise<Looked> {
  try {
    return { answer: await asked };
  } catch (error) {
    const failure = failureOf(error);
    const { code, message, hint, retry } = failure;
    return { answer: { ok: false, ...of, code, message, hint, retry }, failure };
  }
}

const SESSION_PREFIX = "ses_";

function sessionText({ session_id, status, requester, target, expires_at_iso, decided_at_iso, next_action }: Members) {
  const name = String(status).replace(/_.*/, "");
  const when = decided_at_iso === null ? `expires ${expires_at_iso}` : `decided ${decided_at_iso}`;
  return [`${session_id}  `, styled("bold", name), `  ${requester} asked ${target}, ${when}. ${next_action}`];
}

const STYLES: ReadonlyMap<string, Style> = new Map([
  ["online", "green"],
  ["stale", "yellow"],
  ["offline", "red"],
  ["not_seen", "dim"],
]);

function agentText({ agent_id, status, stale_ms }: Members): Line {
  const name = String(status);
  const age =
    typeof stale_ms === "number" ? `last seen ${Math.round(stale_ms / 1000)} s ago` : "not seen in this process window";
  return [`${agent_id}  `, styled(STYLES.get(name) ?? "bold", name), `  ${age}`];
}

function failureText({ answer, failure }: Looked): Line | undefined {
  if (failure === undefined) return undefined;
  const { code, message, hint } = failure;
  return [
    `${answer.agent_id ?? answer.session_id ?? "The relay's counts"}  `,
    styled("red", code),
    `  ${message} ${hint}`.trimEnd(),
  ];
}

function relayText({ complete, online_agents, stale_agents, offline_agents }: Members, url: string): string {
  const part = complete === false ? ", in the part of the relay that is in reach" : "";
  return `${url}: ${online_agents} online, ${stale_agents} stale, ${offline_agents} offline${part}.`;
}
