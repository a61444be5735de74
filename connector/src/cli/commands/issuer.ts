import { AGENT_ID, AGENT_SCHEME } from "../../agent-id.ts";
import { ISSUER } from "../../credentials/contract.ts";
import { isIssuerRecord } from "../../credentials/issuer-record.ts";
import { issuerRecord } from "../../credentials/issuing.ts";
import { readArguments } from "../arguments.ts";
import { EXIT, usageError } from "../failure.ts";
import type { Command } from "../io.ts";
import { jsonLine, Reporter, writeLine } from "../io.ts";
import { newOkpKey } from "../key-file.ts";
import { writeIssuerFile } from "../records.ts";

export const issuer: Command = {
  help: `relay issuer new --issuer <name>: make an issuer, which signs credentials for agents. Offline.

  relay issuer new --issuer acme > acme.json        writes acme.issuer.json, prints the public record

  --issuer NAME  the issuer's name, as its credentials have it
  --agents ID    the agents that it speaks for; may be repeated: an id, or a name space such as 'agent://acme.*' (the default for acme)
  --out FILE     the private file; default <name>.issuer.json. An existing file is never overwritten
  --json         messages on standard error as JSON lines

Who has the private file (mode 0600) can speak for every agent of the issuer: it belongs on no server. The public record is for
  the operators of relays, who admit it to the keys of the relay
  agents that believe it, whatever a relay says: relay listen --trust acme.json
  whoever checks what it signed:                 relay verify receipt.json --issuer acme.json
The issuer then signs for agents with relay issue. Who runs a relay, and issues for its agents, makes the issuer there instead:
new-issuer of its command for keys admits it, too.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      issuer: { type: "string" },
      agents: { type: "string", multiple: true },
      out: { type: "string" },
    });
    if (positionals.length !== 1 || positionals[0] !== "new") throw usageError("issuer takes one word: new.");
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
  throw usageError("The name is none of agents: say for which it speaks, --agents 'agent://acme.*'.");
}
