import { randomBytes } from "node:crypto";
import { AGENT_ID, AGENT_SCHEME } from "../../agent-id.ts";
import { agentMissing, readArguments, unexpectedWord } from "../arguments.ts";
import { EXIT, usageError } from "../failure.ts";
import { replacePrivateFile, writePrivateFile } from "../files.ts";
import type { Command, Options } from "../io.ts";
import { type Io, jsonLine, Reporter, writeLine } from "../io.ts";
import { type KeyRecord, newOkpKey, okpKeyOf, readKeyFile, readKeyRecord, sealingKeyListOf } from "../key-file.ts";

/** Source: docs/protocol.md#envelopes, docs/protocol.md#signatures. */
const KEY_ID = /^(?!gateway-|jkt-)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

const OPTIONS = {
  agent: { type: "string", value: "ID", help: "the agent that signs with the key" },
  alg: { type: "string", value: "NAME", default: "ed25519", help: "ed25519 (default) or hmac-sha256" },
  "key-id": { type: "string", value: "ID", help: "the key's id; default the agent's name and a random suffix" },
  out: { type: "string", value: "FILE", help: "the key file; default <name>.json; never overwritten" },
  "new-sealing-key": { type: "boolean", help: "add a new sealing key to the key file" },
} as const satisfies Options;

export const keygen: Command = {
  usage: "--agent ID [options]",
  options: OPTIONS,
  examples: [
    "relay keygen --agent agent://carol > record.json",
    "relay keygen --agent agent://carol --new-sealing-key > record.json",
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
    const agent = values.agent ?? "";
    if (positionals[0] !== undefined) throw unexpectedWord("keygen", "options only", positionals[0]);
    if (!AGENT_ID.test(agent)) throw usageError(agentMissing(agent));
    const name = agent.slice(AGENT_SCHEME.length);
    const keyId = values["key-id"] ?? newKeyId(agent);
    if (!KEY_ID.test(keyId))
      throw usageError("--key-id must consist of letters, digits and . _ -, and must not begin with gateway- or jkt-.");
    const file = values.out ?? `${name}.json`;
    const reporter = new Reporter(io.stderr, values.json === true);
    if (values["new-sealing-key"]) return await addSealingKey(agent, file, reporter, io);
    if (values.alg === "ed25519") {
      const known = await recordIn(file, agent);
      const isAsked = known !== undefined && [undefined, known.key_id].includes(values["key-id"]);
      if (isAsked) return await printAgain(known, file, reporter, io);
      return await makeEd25519(agent, keyId, file, reporter, io);
    }
    if (values.alg === "hmac-sha256") return await makeHmac(agent, keyId, file, reporter);
    throw usageError("--alg must be ed25519 or hmac-sha256.");
  },
};

async function makeEd25519(
  agent_id: string,
  key_id: string,
  file: string,
  reporter: Reporter,
  io: Io,
): Promise<number> {
  const key = newAgentKey(agent_id, key_id);
  await writePrivateFile(file, key.file);
  const said = `Wrote ${file}, for the agent only. The line below is public: give it to an issuer, or to the relay's operator.`;
  reporter.report("key_file", said, { file });
  await writeLine(io.stdout, jsonLine(key.record));
  return EXIT.ok;
}

/** The record of the key that a file holds already; undefined unless it is an Ed25519 key of this agent. */
async function recordIn(file: string, agent: string): Promise<PublicRecord | undefined> {
  const known = await readKeyFile(file).catch(() => undefined);
  if (known?.agent !== agent || known.key.alg !== "ed25519") return undefined;
  const { keyId, privateKey } = known.key;
  const public_key = okpKeyOf("Ed25519", privateKey)?.publicKey as string;
  return publicRecord(agent, keyId, { public_key, sealing_public_key: known.sealingKeys[0]?.publicKey });
}

/** The first of the file from now on; credentials for the one before it go on to hold. */
async function addSealingKey(agent: string, file: string, reporter: Reporter, io: Io): Promise<number> {
  const known = await readKeyFile(file);
  if (known.agent !== agent || known.key.alg !== "ed25519")
    throw usageError(`${file} has no Ed25519 key of this agent.`);
  const pairs = [newOkpKey("X25519"), ...known.sealingKeys];
  await replacePrivateFile(file, { ...(await readKeyRecord(file)), sealing_key: sealingKeyListOf(pairs) });
  const said = `${file} has a new sealing key. The line below is its public record: have a credential issued for it.`;
  reporter.report("key_file", said, { file });
  await writeLine(io.stdout, jsonLine(await recordIn(file, agent)));
  return EXIT.ok;
}

/** Where the record is written to a file, the shell has emptied that file: it gets the same record again, not nothing. */
async function printAgain(record: PublicRecord, file: string, reporter: Reporter, io: Io): Promise<number> {
  const said = `${file} has a key of this agent already; it was not changed. The line below is its record.`;
  reporter.report("key_file", said, { file });
  await writeLine(io.stdout, jsonLine(record));
  return EXIT.ok;
}

/** The relay needs the secret of an HMAC key too: it is handed over in a file, never printed to a terminal or a log. */
async function makeHmac(agent_id: string, key_id: string, file: string, reporter: Reporter): Promise<number> {
  const recordFile = `${file.replace(/\.json$/, "")}.record.json`;
  const secret = randomBytes(32).toString("base64url");
  await writePrivateFile(file, { agent_id, key_id, alg: "hmac-sha256", secret } satisfies KeyRecord);
  await writePrivateFile(recordFile, { key_id, alg: "hmac-sha256", secret, agents: [agent_id] });
  reporter.report("key_file", `Wrote ${file}, for the agent, and ${recordFile}, for the relay's operator.`, {
    file,
    record_file: recordFile,
  });
  reporter.warn(
    "Both files contain the secret. Hand the record over confidentially, and delete it once the relay has it.",
  );
  return EXIT.ok;
}

interface PublicKeys {
  readonly public_key: string;
  readonly sealing_public_key: string | undefined;
}

/** What an issuer signs for, or the relay's operator adds to the keys file. */
export interface PublicRecord extends PublicKeys {
  readonly key_id: string | undefined;
  readonly alg: "ed25519";
  readonly agents: readonly string[];
}

function publicRecord(agent: string, key_id: string | undefined, publicKeys: PublicKeys): PublicRecord {
  return { key_id, alg: "ed25519", ...publicKeys, agents: [agent] };
}

/** What ids of gateways' keys, and of keys with a credential, begin with. */
const RESERVED = /^(?:gateway|jkt)-/;

/** The agent's name and a random suffix. */
export function newKeyId(agent: string): string {
  const id = `${agent.slice(AGENT_SCHEME.length)}-${randomBytes(3).toString("hex")}`;
  return RESERVED.test(id) ? `agent-${id}` : id;
}

/** A new Ed25519 key, with one to seal to: the content of its key file, and its public record. */
export function newAgentKey(
  agent_id: string,
  key_id: string,
): { readonly file: Extract<KeyRecord, { alg: "ed25519" }>; readonly record: PublicRecord } {
  const [signing, sealing] = [newOkpKey("Ed25519"), newOkpKey("X25519")];
  const [private_key, sealing_key] = [signing.privateKey, sealing.privateKey];
  const publicKeys = { public_key: signing.publicKey, sealing_public_key: sealing.publicKey };
  return {
    file: { agent_id, key_id, alg: "ed25519", private_key, sealing_key },
    record: publicRecord(agent_id, key_id, publicKeys),
  };
}
