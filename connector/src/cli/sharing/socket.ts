import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { lstat, mkdir, readdir, unlink } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import os from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Io, Reporter } from "../io.ts";
import { shellWord } from "../io.ts";

/**
 * The control socket of a process that has an agent's connection: where it is, and who may use it. Its folder is open to its
 * owner alone, so whoever connects is a program of the same user, and is trusted. No environment variable moves it: an
 * application of the desktop starts `relay mcp` with another environment than a shell has.
 * Source: docs/security.md#the-control-socket.
 */

/** Whose connection is shared: that of one agent at one relay, by the processes of one user. */
export interface ControlPlace {
  readonly agent: string;
  readonly websocketUrl: string;
  readonly signal: AbortSignal;
  /** Says why nothing can be shared, once in a process. @param hint how to mend it. */
  readonly warn: (text: string, hint: string) => void;
}

export function controlPlace(agent: string, websocketUrl: string, io: Io, reporter: Reporter): ControlPlace {
  const warn = (text: string, hint: string) => reporter.warnOnce(`${text} ${hint}`, { code: "not_shared", hint });
  return { agent, websocketUrl, signal: io.signal, warn };
}

/** How often a process says over its control socket that it is there, and how often its clients look whether it has. */
export const ALIVE = { everyMs: 3000, lookMs: 5000 };

/**
 * Of the lines: processes that differ in it share no connection. A member that an older process would refuse or ignore raises it.
 * The first line of every format says it.
 */
export const FORMAT = 1;

type Warn = ControlPlace["warn"];

/** Of a socket's path: macOS takes 103, Linux 107. */
const MAX_PATH_BYTES = 100;
const AGENT_CHARACTERS = 24;
const PROCESS_BYTES = 6;
const NAME_BYTES = AGENT_CHARACTERS + 1 + 2 * PROCESS_BYTES;
const NAME = /^[0-9a-f]{24}-[0-9a-f]{12}$/;
/** What follows where sockets cannot be had. */
const UNSHARED = "The processes of the agent on this machine share no connection.";

/**
 * Listens on a new socket in the folder, which is made when it is missing. Sockets that killed processes left there are removed.
 * @param meet called with each client.
 * @returns undefined when there can be none, which is warned of.
 */
export async function listenAt(
  place: ControlPlace,
  meet: (client: Socket) => void,
): Promise<ControlSocket | undefined> {
  const folder = await madeFolder(place.warn);
  if (folder === undefined) return undefined;
  await removeStale(folder);
  // A new name each time: a process that was superseded must not remove the socket of its successor.
  const path = join(folder, `${nameOf(place)}-${randomBytes(PROCESS_BYTES).toString("hex")}`);
  const server = createServer(meet);
  try {
    await once(server.listen(path), "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const hint = "The folder has to be on a file system that takes sockets, and this user has to be able to write it.";
    place.warn(`No control socket can be opened in ${folder} (${code}). ${UNSHARED}`, hint);
    return undefined;
  }
  server.on("error", () => {});
  return { path, server };
}

export interface ControlSocket {
  readonly path: string;
  /** Its end removes the file. */
  readonly server: Server;
}

/** The sockets of all processes of this user that may have the agent's connection, stale ones included. */
export async function socketPaths(place: ControlPlace): Promise<string[]> {
  const folder = await presentFolder(place.warn);
  return folder === undefined ? [] : await socketsIn(folder, `${nameOf(place)}-`);
}

/** The lines that come over a socket, which end with it, however it ends. */
export function linesOf(socket: Socket): Interface {
  const lines = createInterface({ input: socket }).on("error", () => {});
  // The socket of a process that was killed fails to be read.
  socket.on("error", () => {}).once("close", () => lines.close());
  return lines;
}

function nameOf({ agent, websocketUrl }: ControlPlace): string {
  return createHash("sha256").update(`${agent} ${websocketUrl}`).digest("hex").slice(0, AGENT_CHARACTERS);
}

async function socketsIn(folder: string, prefix = ""): Promise<string[]> {
  const files = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const sockets = files.filter((file) => file.isSocket() && file.name.startsWith(prefix) && NAME.test(file.name));
  return sockets.map(({ name }) => join(folder, name));
}

async function removeStale(folder: string): Promise<void> {
  for (const path of await socketsIn(folder)) if (await refuses(path)) await unlink(path).catch(() => {});
}

/** Whether nothing listens there. A busy process, and one of another container, accepts. */
async function refuses(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  } finally {
    socket.destroy();
  }
}

async function madeFolder(warn: Warn): Promise<string | undefined> {
  const folder = await folderWhere(isMade);
  if (folder === undefined) return undefined;
  const failed = await whyNotMade(folder);
  if (failed === undefined) return await privateFolder(folder, warn);
  const hint = "Give this user a home folder that it can write, and start the processes again.";
  warn(`The folder of the control sockets, ${folder}, cannot be made (${failed}). ${UNSHARED}`, hint);
  return undefined;
}

async function presentFolder(warn: Warn): Promise<string | undefined> {
  const folder = await folderWhere(isThere);
  return folder && (await privateFolder(folder, warn));
}

/**
 * Undefined on systems without Unix sockets.
 * @param isUsable whether that of the home folder is; else it is the other one.
 */
async function folderWhere(isUsable: (folder: string) => Promise<boolean>): Promise<string | undefined> {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  const ofHome = folderOfHome();
  return ofHome !== undefined && (await isUsable(ofHome)) ? ofHome : `/tmp/agent-relay-${uid}`;
}

/** Of the user's entry in passwd, which may be missing. Undefined when the path of a socket there would be too long. */
function folderOfHome(): string | undefined {
  try {
    const folder = join(os.userInfo().homedir, ".agent-relay", "run");
    const bytes = Buffer.byteLength(folder) + 1 + NAME_BYTES;
    return isAbsolute(folder) && bytes <= MAX_PATH_BYTES ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** A home folder that is missing is not made. */
async function isMade(folder: string): Promise<boolean> {
  for (const path of [dirname(folder), folder]) if ((await whyNotMade(path)) !== undefined) return false;
  return true;
}

async function isThere(folder: string): Promise<boolean> {
  return (await statOf(folder)) !== undefined;
}

/** Undefined when it is there, whatever it is; else the code of the error. */
async function whyNotMade(folder: string): Promise<string | undefined> {
  const failed = await mkdir(folder, { mode: 0o700 }).then(() => "EEXIST", codeOf);
  return failed === "EEXIST" ? undefined : failed;
}

/** In any other one another user could take the place of a process, or connect to it. */
async function privateFolder(folder: string, warn: Warn): Promise<string | undefined> {
  const found = await statOf(folder);
  if (found === undefined) return undefined;
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    const text = `The folder of the control sockets, ${folder}, belongs to another user or is not a folder. ${UNSHARED}`;
    warn(text, "Have it removed, and start the processes again.");
    return undefined;
  }
  if ((found.mode & 0o077) === 0) return folder;
  const text = `Other users can enter the folder of the control sockets, ${folder}. ${UNSHARED}`;
  warn(text, `Run: chmod 700 ${shellWord(folder)}, and start the processes again.`);
  return undefined;
}

async function statOf(path: string) {
  return await lstat(path).catch(() => undefined);
}

function codeOf({ code }: NodeJS.ErrnoException): string {
  return code ?? "";
}
