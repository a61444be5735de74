import { readArguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { Failure, usageError } from "../failure.ts";
import { readKeyRecord, signingAgentOf } from "../key-file.ts";
import { jsonLine, writeLine } from "../output.ts";
import { replacePrivateFile } from "../private-file.ts";
import { readToken } from "../token.ts";
import { readTrust } from "../trust.ts";

export const credential: Command = {
  help: `relay credential FILE --key KEYFILE: put a credential into the key file of its agent. Offline.

  relay credential bob.credential --key bob.json
  relay issue … | relay credential - --key bob.json

FILE is what relay issue printed; - for standard input.

  --key FILE    the agent's key file, made by relay keygen; or RELAY_KEY_FILE
  --trust FILE  issuers to write into it too, as relay issuer new prints them: the agent believes what they signed
  --json        the result as one line of JSON

The file is replaced as a whole. A relay listen or relay mcp that runs with it reads it again when its credential is to be
renewed, and stays online.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      key: { type: "string" },
      trust: { type: "string", multiple: true },
    });
    const [word, ...more] = positionals;
    const file = values.key ?? (io.env.RELAY_KEY_FILE || undefined);
    if (word === undefined || more.length > 0) throw usageError("credential takes one word: the file, or -.");
    if (file === undefined) throw usageError("Name the agent's key file: --key FILE.");

    const given = await readToken(word, io);
    const { agent, keyId: key_id, token, issuer, expiresAt } = given;
    const record = { ...(await readKeyRecord(file)), key_id, credential: token };
    const { sealingKeys, trust } = await signingAgentOf(record, "With it, the key file");
    const isReadable = sealingKeys.some(({ publicKey }) => publicKey === given.sealingKey);
    if (given.sealingKey !== undefined && !isReadable) throw unreadable();
    const { keys, issuers } = await readTrust(values.trust ?? [], trust.issuers, io);
    if (Object.keys(keys).length > 0) throw usageError("--trust takes records of issuers here, and no keys.");

    await replacePrivateFile(file, { ...record, ...(issuers.length > 0 && { trusted_issuers: issuers }) });
    const until = new Date(expiresAt).toISOString();
    const result = { ok: true, file, agent_id: agent, key_id, issuer, expires_at_iso: until };
    const text = `${file} has the credential of ${agent} now: ${issuer} vouches for it until ${until}.`;
    await writeLine(io.stdout, values.json ? jsonLine(result) : text);
    return EXIT.ok;
  },
};

/** Others would seal to a key that its agent does not have. */
function unreadable(): Failure {
  return new Failure(
    "invalid_credential",
    "The credential has a sealing key that is not in the key file.",
    "Have it issued for the public record that relay keygen printed with this key file.",
  );
}
