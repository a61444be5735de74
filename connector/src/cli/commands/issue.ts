import { AGENT_ID } from "../../agent-id.ts";
import { issueCredential } from "../../credentials/issuing.ts";
import { agentMissing, readArguments, unexpectedWord, wholeNumber } from "../arguments.ts";
import { EXIT, type Failure, usageError } from "../failure.ts";
import type { Command, Options } from "../io.ts";
import { jsonLine, Reporter, writeLine } from "../io.ts";
import { readIssuerFile, readPublicKeys, type SigningIssuer, speakFor } from "../records.ts";

const DAYS = { default: 30, max: 90 } as const;

const OPTIONS = {
  issuer: { type: "string", value: "FILE", help: "the issuer's private file, made by relay issuer new" },
  agent: { type: "string", value: "ID", help: "the agent that the key is to speak for" },
  key: { type: "string", value: "FILE", help: "the public record of its key; - for standard input" },
  days: {
    type: "string",
    value: "N",
    help: `days until the credential expires, 1 to ${DAYS.max}; default ${DAYS.default}`,
  },
  aud: { type: "string", value: "HOST", multiple: true, help: "a relay that it is for; may be repeated; default any" },
} as const satisfies Options;

export const issue: Command = {
  usage: "--issuer FILE --agent ID --key FILE [options]",
  options: OPTIONS,
  examples: [
    "relay issue --issuer acme.issuer.json --agent agent://acme.bob --key bob.pub",
    "relay issue … | relay credential - --key bob.json",
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
    const { issuer: issuerFile, agent, key, aud: audience, json = false } = values;
    if (positionals[0] !== undefined) throw unexpectedWord("issue", "options only", positionals[0]);
    if (issuerFile === undefined) throw usageError("Name the issuer's private file: --issuer FILE.");
    if (agent === undefined || !AGENT_ID.test(agent)) throw usageError(agentMissing(agent));
    if (key === undefined) throw usageError("Name the public record of the agent's key: --key FILE.");
    const days = wholeNumber("days", values.days, 1, DAYS.max) ?? DAYS.default;
    const issuer = await readIssuerFile(issuerFile, io);
    if (issuer.agents !== undefined && !speakFor(issuer.agents, agent)) throw speaksForOthers(issuer, agent);
    const { publicKey, sealingKey, agents } = await readPublicKeys(key, io);
    if (!agents.includes(agent)) throw usageError("The key was made for another agent than --agent.");

    const claims = { agent, publicKey, sealingKey, audience, days };
    const { token, keyId, expiresAt } = await issueCredential(issuer, claims).catch((error) => {
      if (error instanceof TypeError)
        throw usageError("A credential cannot hold these values.", "Check --key and --aud.");
      throw error;
    });
    const until = new Date(expiresAt).toISOString();
    if (json) {
      const members = { issuer: issuer.issuer, agent_id: agent, key_id: keyId, expires_at_iso: until };
      await writeLine(io.stdout, jsonLine({ ok: true, credential: token, ...members }));
      return EXIT.ok;
    }
    const said = `${issuer.issuer} vouches for ${agent} until ${until}. The line below is public: give it to the agent.`;
    new Reporter(io.stderr, false).report("issued", said);
    await writeLine(io.stdout, token);
    return EXIT.ok;
  },
};

/** No relay and no agent that knows the issuer would believe it. */
function speaksForOthers({ issuer, agents = [] }: SigningIssuer, agent: string): Failure {
  return usageError(
    `${issuer} does not speak for ${agent}. It speaks for ${agents.join(", ")}.`,
    "Make an issuer that does with relay issuer new --issuer <name> --agents <agent>.",
  );
}
