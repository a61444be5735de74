/**
 * The lines of a pod's channel. Scripts write those about an agent; the pod itself sends the loopback, and hears by it that
 * its subscription works. Source: shared/window/src/lua/lib/channel_line.lua.
 */
export type ChannelLine =
  | (AboutAgent & { readonly kind: "deliver"; readonly sessionId: string | null; readonly text: string })
  | (AboutAgent & { readonly kind: "superseded" | "probe" })
  | { readonly kind: "loopback"; readonly id: string };

interface AboutAgent {
  readonly connection: string;
  /** The connection's, but the newer owner's in `superseded`. */
  readonly epoch: number;
  readonly agent: string;
}

/** Stands for the session of an envelope that is of none. */
export const NO_SESSION = "-";

const DELIVER = "deliver ";

export function formatLoopback(id: string): string {
  return `loopback ${id}`;
}

/** @returns undefined for a kind that this version does not know. */
export function parseChannelLine(line: string): ChannelLine | undefined {
  if (line.startsWith(DELIVER)) return parseDelivery(line);
  const [kind, first = "", epoch, agent = ""] = line.split(" ");
  if (kind === "superseded" || kind === "probe") return { kind, connection: first, epoch: Number(epoch), agent };
  return kind === "loopback" ? { kind, id: first } : undefined;
}

/** Nearly every line is a delivery, and its text is long: its words are looked for, which takes half as long as a split. */
function parseDelivery(line: string): ChannelLine {
  const epochAt = line.indexOf(" ", DELIVER.length) + 1;
  const agentAt = line.indexOf(" ", epochAt) + 1;
  const sessionAt = line.indexOf(" ", agentAt) + 1;
  const sessionEnd = line.indexOf(" ", sessionAt);
  const sessionId = line.slice(sessionAt, sessionEnd);
  return {
    kind: "deliver",
    connection: line.slice(DELIVER.length, epochAt - 1),
    epoch: Number(line.slice(epochAt, agentAt - 1)),
    agent: line.slice(agentAt, sessionAt - 1),
    sessionId: sessionId === NO_SESSION ? null : sessionId,
    text: line.slice(sessionEnd + 1),
  };
}
