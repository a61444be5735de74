import { percentile } from "../report.ts";

/** What a bystander asked the relay for. */
export type SampleKind = "message" | "session" | "heartbeat" | "health" | "presence" | "gateway";

/** One thing that a bystander asked for, and how it was answered. */
export interface Sample {
  readonly kind: SampleKind;
  /** When it was asked, monotonic ms. */
  readonly at: number;
  /** Ms until the answer; so far, where none has come. */
  readonly ms: number;
  /** Code, status or fault that it was refused with. */
  readonly refused?: string;
}

/** What bystanders noticed; times are ms, NaN where nothing was asked. */
export interface Figures {
  /** How much was asked. */
  readonly count: number;
  /** Of messages and sessions. */
  readonly ackMedian: number;
  readonly ackP95: number;
  readonly ackMax: number;
  readonly heartbeatP95: number;
  readonly healthMax: number;
  /** How often each refusal came. */
  readonly refused: Readonly<Record<string, number>>;
}

const ACKED: readonly SampleKind[] = ["message", "session"];

export function figuresOf(samples: readonly Sample[]): Figures {
  const of = (...kinds: readonly SampleKind[]) =>
    samples.filter(({ kind }) => kinds.includes(kind)).map(({ ms }) => ms);
  const refused: Record<string, number> = {};
  for (const sample of samples) {
    if (sample.refused === undefined) continue;
    const name = `${sample.kind} ${sample.refused}`;
    refused[name] = (refused[name] ?? 0) + 1;
  }
  return {
    count: samples.length,
    ackMedian: percentile(of(...ACKED), 0.5),
    ackP95: percentile(of(...ACKED), 0.95),
    ackMax: percentile(of(...ACKED), 1),
    heartbeatP95: percentile(of("heartbeat"), 0.95),
    healthMax: percentile(of("health"), 1),
    refused,
  };
}
