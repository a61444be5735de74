import { readCredential } from "../../credentials/read-credential.ts";
import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import { EXIT, Failure, usageError } from "../failure.ts";
import { replacePrivateFile } from "../files.ts";
import type { Command, Options } from "../io.ts";
import { jsonLine, writeLine } from "../io.ts";
import { readKeyRecord, rotated, sealingKeyListOf, signingAgentOf } from "../key-file.ts";
import { readToken, readTrust, speakFor } from "../records.ts";

const OPTIONS = {
  key: AGENT_OPTIONS.key,
  trust: { type: "string", value: "FILE", multiple: true, help: "issuers for the agent to trust; may be repeated" },
} as const satisfies Options;

export const credential: Command = {
  usage: "<file> [options]",
  options: OPTIONS,
  examples: ["relay credential bob.credential --key bob.json", "relay issue … | relay credential - --key bob.json"],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
    const [word, ...more] = positionals;
    const file = values.key ?? (io.env.RELAY_KEY_FILE || undefined);
    if (word === undefined || more.length > 0) throw usageError("credential takes one word, the file or -.");
    if (file === undefined) throw usageError("Name the agent's key file: --key FILE.");

    const given = await readToken(word, io);
    const { agent, keyId: key_id, token, issuer, expiresAt } = given;
    const before = await readKeyRecord(file);
    const record = { ...before, key_id, credential: token };
    const { sealingKeys, trust } = await signingAgentOf(record, "With it, the key file");
    const isReadable = sealingKeys.some(({ publicKey }) => publicKey === given.sealingKey);
    if (given.sealingKey !== undefined && !isReadable) throw unreadable();
    const { keys, issuers, gateways } = await readTrust(values.trust ?? [], trust.issuers, io);
    const pinned = issuers.find((record) => record.issuer === issuer);
    if (pinned !== undefined && !speakFor(pinned.agents, agent)) {
      throw usageError(
        `${issuer} does not speak for ${agent}. By its record it speaks for ${pinned.agents.join(", ")}.`,
      );
    }
    if (Object.keys(keys).length + gateways.length > 0)
      throw usageError("--trust takes records of issuers here, not keys.");

    const kept = rotated(sealingKeys, given, await readCredential(before.credential), Date.now());
    const sealing = kept.length > 0 && { sealing_key: sealingKeyListOf(kept) };
    await replacePrivateFile(file, { ...record, ...sealing, ...(issuers.length > 0 && { trusted_issuers: issuers }) });
    const until = new Date(expiresAt).toISOString();
    const former = kept.flatMap(({ until: end }) => (end === undefined ? [] : [new Date(end).toISOString()]));
    const members = { former_sealing_keys_until_iso: former, dropped_sealing_keys: sealingKeys.length - kept.length };
    const result = { ok: true, file, agent_id: agent, key_id, issuer, expires_at_iso: until, ...members };
    const said = [
      ...former.map((end) => ` A former sealing key opens what was sealed to it until ${end}.`),
      sealingKeys.length > kept.length
        ? ` Sealing keys whose time was over were dropped: ${sealingKeys.length - kept.length}.`
        : "",
    ];
    const text = `${file} has the credential of ${agent} now: ${issuer} vouches for it until ${until}.${said.join("")}`;
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
