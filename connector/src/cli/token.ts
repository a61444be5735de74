import { type Credential, readCredential } from "../credentials/read-credential.ts";
import { membersOf } from "../frames.ts";
import { parseJson } from "../parse-json.ts";
import { Failure } from "./failure.ts";
import { readText } from "./files.ts";
import type { Input } from "./io.ts";

/** A JWT in compact form; no name of a file is one by chance. */
const TOKEN = /^eyJ[\w-]*\.[\w-]+\.[\w-]+$/;

/**
 * The credential that a word of the command line is, or that the file of this name holds: alone, or as the member
 * `credential` of a JSON object, such as a key file or an answer of the relay.
 * @throws {Failure} `usage`, `invalid_credential`.
 */
export async function readToken(word: string, io: Input): Promise<Credential> {
  const credential = await readCredential(TOKEN.test(word) ? word : tokenIn(await readText(word, io)));
  if (credential !== undefined) return credential;
  throw new Failure("invalid_credential", "This is not a credential: malformed.", "relay issue prints one.");
}

function tokenIn(text: string): unknown {
  try {
    return membersOf(parseJson(text)).credential;
  } catch {
    return text.trim();
  }
}
