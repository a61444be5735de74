import { AGENT_ID, AGENT_SCHEME } from "../../agent-id.ts";
import { ISSUER } from "../../credentials/contract.ts";
import { isIssuerRecord } from "../../credentials/issuer-record.ts";
import { issuerRecord } from "../../credentials/issuing.ts";
import { readArguments } from "../arguments.ts";
import { EXIT, usageError } from "../failure.ts";
import type { Command, Options } from "../io.ts";
import { jsonLine, Reporter, writeLine } from "../io.ts";
import { newOkpKey } from "../key-file.ts";
import { writeIssuerFile } from "../records.ts";

const OPTIONS = {
  issuer: { type: "string", value: "NAME", help: "the issuer's name, as its credentials have it" },
  agents: {
    type: "string",
    value: "ID",
    multiple: true,
    help: "an agent or a name space that it speaks for; may be repeated; default agent://<name>.*",
  },
  out: { type: "string", value: "FILE", help: "the private file; default <name>.issuer.json; never overwritten" },
} as const satisfies Options;

export const issuer: Command = {
  usage: "new --issuer NAME [options]",
  options: OPTIONS,
  examples: [
    "relay issuer new --issuer acme > acme.json",
    "relay issuer new --issuer acme --agents 'agent://acme.*' > acme.json",
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
    if (positionals.length !== 1 || positionals[0] !== "new") throw usageError("issuer takes one word, new.");
    const name = values.issuer ?? "";
    if (!ISSUER.test(name)) throw usageError("Name the issuer: --issuer acme.");
    const key = { issuer: name, ...newOkpKey("Ed25519") };
    const record = issuerRecord(key, values.agents ?? [ownNameSpace(name)]);
    if (!isIssuerRecord(record))
      throw usageError("--agents takes agent ids, and name spaces such as 'agent://acme.*'.");
    const file = values.out ?? `${name}.issuer.json`;
    await writeIssuerFile(file, key, record.agents);
    const said = `Wrote ${file}, which signs for the issuer: keep it yourself. The line below is public.`;
    new Reporter(io.stderr, values.json === true).report("issuer_file", said, { file });
    await writeLine(io.stdout, jsonLine(record));
    return EXIT.ok;
  },
};

function ownNameSpace(name: string): string {
  if (AGENT_ID.test(`${AGENT_SCHEME}${name}.x`)) return `${AGENT_SCHEME}${name}.*`;
  throw usageError("The name cannot begin an agent id. Name the agents, for example --agents 'agent://acme.*'.");
}
