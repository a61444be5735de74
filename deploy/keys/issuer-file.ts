import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { decodeBase64url, ED25519_BYTES, privateKeyOfSeed, publicKeyText } from "relay-protocol/signing/algorithms.ts";
import { ISSUER_PATTERN } from "relay-protocol/wire/credential.ts";
import { parseJson } from "relay-protocol/wire/json.ts";
import { textIn } from "relay-runtime/files.ts";
import { z } from "zod";
import { fileError } from "./file-error.ts";
import { newOkpKey } from "./okp-key.ts";

/** An issuer with its private key, a 32-byte seed in base64url. It lies with the operator, and on no server. */
const IssuerFile = z
  .strictObject({
    issuer: z.string().regex(ISSUER_PATTERN),
    alg: z.literal("ed25519"),
    private_key: z.string().refine((text) => decodeBase64url(text)?.length === ED25519_BYTES.seed),
    public_key: z.string(),
    // As relay issuer new writes it.
    agents: z.array(z.string()).optional(),
  })
  .refine(({ private_key, public_key }) => publicKeyOf(private_key) === public_key);
export type IssuerFile = z.infer<typeof IssuerFile>;

/** A new issuer. */
export function makeIssuerFile(issuer: string): IssuerFile {
  const { privateKey, publicJwk } = newOkpKey("Ed25519");
  return { issuer, alg: "ed25519", private_key: privateKey, public_key: publicJwk.x };
}

/** Where `new-issuer` writes and `new` reads unless told otherwise. */
export function defaultIssuerFile(keysFile: string): string {
  return join(dirname(keysFile), "issuer.json");
}

/** @throws {Error} that says how an issuer is made where there is none, and shows nothing of the file. */
export async function readIssuerFile(file: string): Promise<IssuerFile> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? new Error(missing(file)) : fileError(file, "read", error);
  });
  const result = IssuerFile.safeParse(parsed(textIn(bytes, file)));
  if (result.success) return result.data;
  throw new Error(`${file} is not an issuer file, as new-issuer writes it.`);
}

/** undefined where the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function publicKeyOf(privateKey: string): string | undefined {
  const seed = decodeBase64url(privateKey);
  return seed?.length === ED25519_BYTES.seed ? publicKeyText(privateKeyOfSeed(seed)) : undefined;
}

function missing(file: string): string {
  return `There is no issuer at ${file}. Do one of these:

  npm start                                                  without RELAY_KEYS_FILE: has an issuer for development
  npm run keys -- new-issuer --issuer <name> --agents '*'    makes an issuer
  npm run keys -- new --listed --agent agent://<name>        lists a key, without an issuer

--issuer-file names an issuer that is elsewhere.`;
}
