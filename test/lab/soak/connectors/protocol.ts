/**
 * Between the soak and its processes of agents, of either language: JSON, a line each. The first line of a process's input
 * is its orders, the second ends the sending, the end of the input closes the connectors. Its output is what is told. At
 * SIGUSR2 it frees what is garbage, and says `{"msg": "held"}`.
 */

export interface Orders {
  readonly agents: readonly AgentOrders[];
  /** Of each agent's first message: higher than all of the process before it. */
  readonly first_number: number;
  readonly send_every_ms: number;
  readonly send_timeout_ms: number;
}

export interface AgentOrders {
  /** Of its pod. */
  readonly url: string;
  readonly agent: string;
  /** With the names of a key file. */
  readonly key: Readonly<Record<string, string>>;
  /** Whom it sends to, in turn. */
  readonly partners: readonly string[];
}

/** `id` is the text of the message: sender, target, and a number that rises. `at`: `monotonicMs`. */
export type Told =
  | { readonly told: "online"; readonly agent: string; readonly at: number }
  | { readonly told: "sent"; readonly id: string; readonly at: number }
  | {
      readonly told: "accepted";
      readonly id: string;
      readonly at: number;
      readonly duplicate: boolean;
      readonly realtime: boolean;
    }
  | {
      readonly told: "failed";
      readonly id: string;
      readonly at: number;
      readonly code: string;
      readonly outcome: "refused" | "unknown";
    }
  | { readonly told: "delivered"; readonly id: string; readonly agent: string; readonly at: number }
  /** An `error` event. */
  | { readonly told: "problem"; readonly code: string };
