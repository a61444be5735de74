import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { Failure, usageError } from "./failure.ts";
import { textIn } from "./files.ts";
import type { Io } from "./io.ts";
import { writePrivateText } from "./private-file.ts";

/** No link is followed, and no named pipe waited for; Windows has neither flag. */
const AS_IT_IS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
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
  own: number | undefined = process.getuid?.(),
): Promise<McpToken> {
  if (env.RELAY_MCP_TOKEN) return { token: checked(env.RELAY_MCP_TOKEN, "RELAY_MCP_TOKEN"), place: "RELAY_MCP_TOKEN" };
  if (file === undefined)
    throw usageError("--http needs a token.", "Name a file with --token-file, or set RELAY_MCP_TOKEN.");
  const token = (await tokenOf(file, own)) ?? (await newToken(file));
  return { token, place: file };
}

/** Of one opened file: what is looked at cannot be exchanged before it is read. Undefined where there is none. */
async function tokenOf(file: string, own: number | undefined): Promise<string | undefined> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, AS_IT_IS);
    await requireOwn(handle, file, own);
    return checked(textIn(await handle.readFile(), file).trim(), file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP") throw chosenByOthers(file, "a link");
    throw error instanceof Failure ? error : usageError(`${file} cannot be read (${code}).`);
  } finally {
    await handle?.close();
  }
}

/**
 * Whoever made the file, or can read it, knows the token; whoever made a link to it chose a file whose content they know.
 * @throws {Failure} `usage`.
 */
async function requireOwn(handle: FileHandle, file: string, own: number | undefined): Promise<void> {
  const found = await handle.stat();
  if (!found.isFile()) throw chosenByOthers(file, "no regular file");
  if (own === undefined) return;
  if (found.uid !== own)
    throw usageError(`${file} is another user's, who knows its token.`, `Name a file that is yours. ${MOUNTED}`);
  if (found.nlink !== 1) throw chosenByOthers(file, "one of several links to a file");
  if ((found.mode & 0o077) === 0) return;
  const hint = `Remove it, and another is made. Where nobody else can have used it: chmod 600 ${file}. ${MOUNTED}`;
  throw usageError(`Other users may know the token of ${file}, or have chosen it.`, hint);
}

/** A file that an orchestrator mounts is a link, and others may read it. */
const MOUNTED = "Of a secret that is mounted, as in Kubernetes, give the content: RELAY_MCP_TOKEN, from secretKeyRef.";

function chosenByOthers(file: string, kind: string): Failure {
  return usageError(
    `${file} is ${kind}: another user may have chosen its token.`,
    `Name a regular file that is yours. ${MOUNTED}`,
  );
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
