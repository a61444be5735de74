import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readArguments } from "../arguments.ts";
import type { Command, Io } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { usage } from "../failure.ts";
import { AGENT_ID, type KeyRecord, writePrivateFile } from "../key-file.ts";
import { jsonLine, Voice, writeLine } from "../output.ts";

/** Source: docs/protocol.md, "Envelopes" and "Signatures". */
const KEY_ID = /^(?!gateway-)[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export const command: Command = {
  help: `relay keygen --agent agent://<name>: make a key for an agent.

  relay keygen --agent agent://carol                              writes carol.json, prints the public record
  relay keygen --agent agent://carol | npm run keys -- add        and where the relay is yours, puts it in force

  --agent ID   the agent that will sign with it
  --alg NAME   ed25519 (the relay never holds the secret; when left out) or hmac-sha256
  --key-id ID  the key's name; made from the agent's when left out
  --out FILE   the key file; <name>.json when left out. An existing file is never overwritten
  --json       what is said beside the record, as JSON lines

The key file is for the agent alone (mode 0600):
  {"agent_id":"agent://carol","key_id":"carol-…","alg":"ed25519","private_key":"<base64url, 32 bytes>"}
or with "alg":"hmac-sha256" and "secret". The record is for the relay's operator, who puts it in force: npm run keys -- add.
The record of an hmac-sha256 key holds the secret too: it is not printed, but written beside the key file, as <name>.record.json.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      agent: { type: "string" },
      alg: { type: "string", default: "ed25519" },
      "key-id": { type: "string" },
      out: { type: "string" },
    });
    const agent = values.agent ?? "";
    const name = AGENT_ID.exec(agent)?.[1];
    if (name === undefined || positionals.length > 0) throw usage("Say whose key it is: --agent agent://<name>.");
    const keyId = values["key-id"] ?? `${name}-${randomBytes(3).toString("hex")}`;
    if (!KEY_ID.test(keyId)) throw usage("--key-id is letters, digits and . _ -, and does not begin with gateway-.");
    const file = values.out ?? `${name}.json`;
    const voice = new Voice(io.stderr, values.json === true);
    if (values.alg === "ed25519") return await makeEd25519(agent, keyId, file, voice, io);
    if (values.alg === "hmac-sha256") return await makeHmac(agent, keyId, file, voice);
    throw usage("--alg is ed25519 or hmac-sha256.");
  },
};

async function makeEd25519(agent_id: string, key_id: string, file: string, voice: Voice, io: Io): Promise<number> {
  const { x, d } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  await writePrivateFile(file, { agent_id, key_id, alg: "ed25519", private_key: String(d) } satisfies KeyRecord);
  voice.say(
    "key_file",
    `Wrote ${file}, for the agent alone. The line below is public: give it to the relay's operator.`,
    {
      file,
    },
  );
  await writeLine(io.stdout, jsonLine({ key_id, alg: "ed25519", public_key: x, agents: [agent_id] }));
  return EXIT.ok;
}

/** Both sides need the secret of an HMAC key; it is kept off terminals, and out of the logs of pipelines. */
async function makeHmac(agent_id: string, key_id: string, file: string, voice: Voice): Promise<number> {
  const recordFile = `${file.replace(/\.json$/, "")}.record.json`;
  const secret = randomBytes(32).toString("base64url");
  await writePrivateFile(file, { agent_id, key_id, alg: "hmac-sha256", secret } satisfies KeyRecord);
  await writePrivateFile(recordFile, { key_id, alg: "hmac-sha256", secret, agents: [agent_id] });
  voice.say("key_file", `Wrote ${file}, for the agent, and ${recordFile}, for the relay's operator.`, {
    file,
    record_file: recordFile,
  });
  voice.warn("Both files hold the secret. Hand the record over in private, and delete it once it is in force.");
  return EXIT.ok;
}
