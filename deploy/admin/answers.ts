/** The answers of an admin listener. Source: docs/operations.md#admin. */

export interface PodCounts {
  readonly id: string;
  readonly connections: number;
  readonly registered_connections: number;
  readonly agents: number;
  readonly outbox_bytes: number;
}

export interface WindowCounts {
  readonly window: { readonly id: string; readonly since: string };
  readonly agents: { readonly online: number; readonly stale: number; readonly offline: number };
  readonly unavailable_partitions: readonly number[];
}

export type CountsAnswer = WindowCounts & { readonly pod: PodCounts };

/** Of several pods. */
export type Counts = WindowCounts & { readonly pods: readonly PodCounts[] };

export interface Agents {
  readonly kind: string;
  readonly id: string;
  readonly total: number;
  readonly truncated: boolean;
  readonly complete: boolean;
  readonly agents: readonly {
    readonly agent: string;
    readonly presence: string;
    readonly congested: boolean;
    readonly last_seen: string | null;
    readonly online_since: string | null;
  }[];
}

export interface Sender {
  readonly kind: string;
  readonly id: string;
  readonly envelopes: number;
  readonly bytes: number;
}

export interface Refused {
  readonly kind: string;
  readonly id: string;
  readonly times: number;
}

export interface RefusedCode {
  readonly code: string;
  readonly times: number;
}

interface Noise {
  readonly span_seconds: number;
  readonly by_envelopes: readonly Sender[];
  readonly by_bytes: readonly Sender[];
  readonly refusals: {
    readonly since: string;
    readonly by_sender: readonly Refused[];
    readonly by_code: readonly RefusedCode[];
  };
}

export type NoisiestAnswer = Noise & { readonly pod: string };

/** Of several pods. */
export type Noisiest = Noise & { readonly pods: readonly string[] };
