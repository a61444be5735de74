/**
 * The lines of a pod's channel. Scripts write those about an agent; the pod itself sends the loopback, and hears by it that
 * its subscription works. A traced line is of the delivery before it, and part of its text to the scripts. Source: shared/window/src/lua/lib/channel_line.lua.
 */
export type ChannelLine =
  | (AboutAgent & { readonly kind: "deliver"; readonly sessionId: string | null; readonly text: string })
  | (AboutAgent & { readonly kind: (typeof PLAIN_KINDS)[number] })
  | { readonly kind: "traced"; readonly traceparent: string }
  | { readonly kind: "loopback"; readonly id: string };

/** Lines that name nothing but an agent and its connection. */
const PLAIN_KINDS = ["superseded", "probe", "disconnect"] as const;

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

/** The text of an envelope as scripts are given it: of a sampled trace with a line of its own behind it. */
export function textWithTrace(text: string, traceparent: string | undefined): string {
  return traceparent === undefined ? text : `${text}\ntraced ${traceparent}`;
}

/** @returns undefined for a kind that this version does not know. */
export function parseChannelLine(line: string): ChannelLine | undefined {
  if (line.startsWith(DELIVER)) return parseDelivery(line);
  const [word, first = "", epoch, agent = ""] = line.split(" ");
  if (word === "loopback") return { kind: word, id: first };
  if (word === "traced") return { kind: word, traceparent: first };
  const kind = PLAIN_KINDS.find((known) => known === word);
  return kind && { kind, connection: first, epoch: Number(epoch), agent };
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
