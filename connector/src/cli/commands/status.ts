import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { readKeyFile } from "../key-file.ts";
import { jsonLine, type Line, type Style, styled, writeLine } from "../output.ts";
import { RelayHttp } from "../relay-http.ts";
import { targetOf } from "../target.ts";

type Members = Readonly<Record<string, unknown>>;

export const status: Command = {
  help: `relay status [agent…]: show who is online.

  relay status agent://alice agent://bob

  --key FILE  show the agent of this key file, too
  --url URL   the relay; or RELAY_URL; default http://127.0.0.1:8080
  --json      one line of JSON: the relay's counts, and its answer for each agent

Needs no key. Without agents it shows only the relay's counts; the relay never lists who is online.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, AGENT_OPTIONS);
    const own = values.key === undefined ? [] : [(await readKeyFile(values.key)).agent];
    const http = new RelayHttp(values.url, io);
    const [relay, ...agents] = await Promise.all([
      http.get("/api/onboarding/online-agents"),
      ...[...own, ...positionals.map(targetOf)].map((agent) => http.presence(agent)),
    ]);
    if (values.json) {
      await writeLine(io.stdout, jsonLine({ ok: true, relay, agents }));
      return EXIT.ok;
    }
    for (const agent of agents) await writeLine(io.stdout, agentText(agent));
    await writeLine(io.stdout, relayText(relay ?? {}, http.baseUrl));
    return EXIT.ok;
  },
};

const STYLES: ReadonlyMap<string, Style> = new Map([
  ["online", "green"],
  ["stale", "yellow"],
  ["offline", "red"],
  ["not_seen", "dim"],
]);

function agentText({ agent_id, status, stale_ms }: Members): Line {
  const name = String(status);
  const age = typeof stale_ms === "number" ? `last seen ${Math.round(stale_ms / 1000)} s ago` : "never seen";
  return [`${agent_id}  `, styled(STYLES.get(name) ?? "bold", name), `  ${age}`];
}

function relayText({ online_agents, stale_agents, offline_agents }: Members, url: string): string {
  return `${url}: ${online_agents} online, ${stale_agents} stale, ${offline_agents} offline.`;
}
