import { randomBytes } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { Failure, usageError } from "./failure.ts";
import type { Io } from "./io.ts";
import { permissionWarning, writePrivateText } from "./private-file.ts";
import type { Reporter } from "./reporter.ts";

const TOKEN_BYTES = 32;
const TOKEN = /^[!-~]{32,512}$/;

interface McpToken {
  readonly token: string;
  /** Where a person finds it. */
  readonly place: string;
}

/**
 * The token that HTTP clients of `relay mcp` need: RELAY_MCP_TOKEN, else that of a file, which is made when there is none.
 * @param own the id of the user of this process; undefined on systems without.
 * @throws {Failure} `usage`, `failed`.
 */
export async function mcpToken(
  file: string | undefined,
  env: Io["env"],
  reporter: Reporter,
  own: number | undefined = process.getuid?.(),
): Promise<McpToken> {
  if (env.RELAY_MCP_TOKEN) return { token: checked(env.RELAY_MCP_TOKEN, "RELAY_MCP_TOKEN"), place: "RELAY_MCP_TOKEN" };
  if (file === undefined)
    throw usageError("--http needs a token.", "Name a file with --token-file, or set RELAY_MCP_TOKEN.");
  const token = (await tokenOf(file, own)) ?? (await newToken(file));
  const warning = await permissionWarning(file);
  if (warning !== undefined) reporter.warn(warning);
  return { token, place: file };
}

/** Of one opened file: what is looked at cannot be exchanged before it is read. Undefined where there is none. */
async function tokenOf(file: string, own: number | undefined): Promise<string | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file);
    await requireOwn(handle, file, own);
    return checked((await handle.readFile("utf8")).trim(), file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw error instanceof Failure ? error : usageError(`${file} cannot be read (${code}).`);
  } finally {
    await handle?.close();
  }
}

/** Whoever made the file knows the token; root can read every other, too. @throws {Failure} `usage`. */
async function requireOwn(handle: FileHandle, file: string, own: number | undefined): Promise<void> {
  const { uid } = await handle.stat();
  if (own !== undefined && uid !== own && uid !== 0)
    throw usageError(`${file} is another user's, who knows its token.`, "Name a file that is yours.");
}

async function newToken(file: string): Promise<string> {
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  await writePrivateText(file, token);
  return token;
}

function checked(token: string, place: string): string {
  if (TOKEN.test(token)) return token;
  throw usageError(`${place} holds no token.`, "A token has 32 to 512 characters, without spaces.");
}
