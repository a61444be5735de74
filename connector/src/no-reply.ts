import { RelayError } from "./errors.ts";

/** How a question fared that the target may have got. Monotonic milliseconds. */
export interface Silence {
  readonly envelopeId: string;
  /** When the connection was lost last, since the question; undefined where it never was. */
  readonly lostAt: number | undefined;
  /** Whether the connection is lost now. */
  readonly isLost: boolean;
}

const KEEPS_NONE = "A reply that came meanwhile is lost: the relay keeps none.";
const MAY_COME = "The target may be at it: a late reply is a delivery like any other.";

/** Why a question has no reply in time, as far as this end knows. */
export function noReply({ envelopeId, lostAt, isLost }: Silence, now: number): RelayError {
  const [why, hint] = lostAt === undefined ? ["", MAY_COME] : [`: ${loss(lostAt, isLost, now)}`, KEEPS_NONE];
  return new RelayError("timeout", {
    outcome: "unknown",
    envelopeId,
    message: `No reply came in time${why}.`,
    hint: `${hint} Ask again only what may be done twice.`,
  });
}

function loss(lostAt: number, isLost: boolean, now: number): string {
  if (!isLost) return "the connection to the relay was lost meanwhile";
  return `the connection to the relay was lost ${((now - lostAt) / 1000).toFixed(1)} s ago, and is not back`;
}
