import { randomBytes } from "node:crypto";
import type { Io } from "../io.ts";
import type { SigningAgent } from "../key-file.ts";
import type { Reporter } from "../reporter.ts";

/** Whose connection is shared: that of one agent at one relay, by the processes of one user. */
export interface ControlPlace {
  readonly signing: SigningAgent;
  readonly websocketUrl: string;
  /** Of this process, by chance: it meets no channel of its own, whoever passes it on. */
  readonly self: string;
  readonly signal: AbortSignal;
  /** Says why nothing can be shared, once in a process. @param hint how to mend it. */
  readonly warn: (text: string, hint: string) => void;
}

export function controlPlace(signing: SigningAgent, websocketUrl: string, io: Io, reporter: Reporter): ControlPlace {
  const warn = (text: string, hint: string) => reporter.warnOnce(`${text} ${hint}`, { code: "not_shared", hint });
  const self = randomBytes(8).toString("hex");
  return { signing, websocketUrl, self, signal: io.signal, warn };
}
