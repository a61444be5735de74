import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { Failure } from "../failure.ts";
import { canOpenChannels, channelDialer, type Dial, HANDSHAKE_MS } from "./channel.ts";
import { ControlClient } from "./client.ts";
import type { ControlPlace } from "./place.ts";
import { findSocketFolder } from "./socket-folder.ts";
import { SOCKET_NAME, socketPaths } from "./socket-path.ts";

/** Nothing listens there, or no longer. */
const GONE: readonly unknown[] = ["ENOENT", "ECONNREFUSED", "ENOTSOCK", "EPROTOTYPE"];
/** Something listens there that has no room at the moment; else the next attempt finds it gone. */
const BUSY: readonly unknown[] = ["ECONNRESET", "EPIPE", "EAGAIN", "ETIMEDOUT"];
/** Something listens there, and says nothing. */
const SILENT = "ABORT_ERR";
const AGAIN_MS = 200;
/** Far more than an agent has processes: what else lies in the folder must not take all files that a process may open. */
const MAX_DIALED = 512;

/**
 * Looks for the process of this user that has the agent's connection: the first behind any of its sockets, but `except`, that proves
 * to have its key. What else lies there takes no longer, however much it is, than one that says nothing.
 * @returns undefined when there is none.
 * @throws {Failure} `invalid_key`, `unreachable` when something is there, and does not prove it.
 */
export async function findHolder(place: ControlPlace, except?: string): Promise<ControlClient | undefined> {
  const { signing, websocketUrl, signal, warn } = place;
  const folder = await findSocketFolder(place);
  const found = folder === undefined ? [] : await socketPaths(folder, signing.agent, websocketUrl);
  const paths = found.filter((path) => path !== except);
  if (paths.length === 0 || !canOpenChannels(warn)) return undefined;
  const dial = await channelDialer(place);
  const decided = new AbortController();
  const until = AbortSignal.any([signal, decided.signal, AbortSignal.timeout(HANDSHAKE_MS)]);
  const attempts = anyOf(paths).map(async (path) => ({ path, channel: await patientDial(path, dial, until) }));
  try {
    const first = await Promise.any(attempts);
    for (const attempt of attempts) {
      void attempt.then(({ channel }) => channel !== first.channel && channel.destroy(), ignored);
    }
    return new ControlClient(first.channel, first.path, signal);
  } catch (error) {
    if (signal.aborted) return undefined;
    return absent(signing.agent, (error as AggregateError).errors.map(codeOf));
  } finally {
    decided.abort();
  }
}

/** The id of the process that findHolder finds; undefined where it finds none, or what is there proves nothing. */
export async function holdingProcess(place: ControlPlace, except?: string): Promise<string | undefined> {
  const holder = await findHolder(place, except).catch(() => undefined);
  holder?.close();
  return holder && SOCKET_NAME.exec(basename(holder.path))?.[1];
}

/** Where there are too many: chance gives each its turn, since their names are as their makers like. */
function anyOf(paths: readonly string[]): readonly string[] {
  if (paths.length <= MAX_DIALED) return paths;
  const turns = paths.map((path) => ({ path, turn: Math.random() }));
  return turns
    .sort((one, other) => one.turn - other.turn)
    .slice(0, MAX_DIALED)
    .map(({ path }) => path);
}

/** Tries again while what listens there has no room. Rejects with the last error that is not the end of the time. */
async function patientDial(path: string, dial: Dial, signal: AbortSignal): Promise<TLSSocket> {
  let last: unknown;
  for (;;) {
    try {
      return await dial(path, signal);
    } catch (error) {
      if (signal.aborted) throw last ?? error;
      if (!BUSY.includes(codeOf(error))) throw error;
      last = error;
    }
    await delay(Math.random() * AGAIN_MS, undefined, { signal }).catch(ignored);
  }
}

/** @param codes why each attempt failed. @throws {Failure} */
function absent(agent: string, codes: readonly unknown[]): undefined {
  if (codes.every((code) => GONE.includes(code))) return undefined;
  if (codes.some((code) => code === SILENT || BUSY.includes(code))) throw busy(agent);
  throw otherKey(agent);
}

function busy(agent: string): Failure {
  const text = `The process that has the control socket of ${agent} here does not answer at the moment.`;
  return new Failure("unreachable", text, "Nothing was sent: send it again later.", {
    retry: "later",
    outcome: "refused",
  });
}

function otherKey(agent: string): Failure {
  const text = `What has the control socket of ${agent} here has not this key.`;
  const hint = "Use the key file that the process was started with, or end it and start it with this one.";
  return new Failure("invalid_key", text, hint, { retry: "fix" });
}

function codeOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException).code;
}

function ignored(): void {}
