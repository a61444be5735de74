import type { RelayAddress } from "./address.ts";
import { probeAttempt } from "./attempt-probe.ts";
import { RelayError } from "./errors.ts";
import { membersOf, waitOf } from "./frames.ts";
import { answerTo } from "./http-answer.ts";
import { FIRST_START } from "./limits.ts";
import type { StartOptions } from "./options.ts";
import { parseJson } from "./parse-json.ts";

export interface FirstStartOptions {
  readonly agent: string;
  readonly address: RelayAddress;
  readonly takeOver: boolean;
  /** An attempt failed. */
  readonly failed: (error: RelayError) => void;
  /** No further attempt may follow. */
  readonly ended: (error: RelayError) => void;
}

/** What is different until the agent is registered for the first time. */
export class FirstStart {
  readonly #options: FirstStartOptions;
  readonly #presenceUrl: string;
  readonly #stopped = new AbortController();
  #mayRegister: boolean;
  #isOver = false;
  #keyRefusedAt: number | undefined;
  #failure: RelayError | undefined;

  constructor(options: FirstStartOptions) {
    const { agent, address, takeOver } = options;
    this.#options = options;
    this.#presenceUrl = `${address.base}/api/onboarding/check-online?agent_id=${encodeURIComponent(agent)}`;
    this.#mayRegister = takeOver;
  }

  /** Ends the start by the time or the signal. @returns what releases both. */
  limit({ signal, timeoutMs }: StartOptions): () => void {
    const { ended } = this.#options;
    const abort = () => ended(new RelayError("aborted", { cause: signal?.reason }));
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => ended(this.#timeout()), timeoutMs);
    return () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
  }

  /**
   * Before the first register, which would end the connection of whoever has the agent. Later ones are this connector's own
   * reconnects: what is online then may be its own connection. Rejects with `superseded_elsewhere`.
   */
  async beforeRegister(): Promise<void> {
    if (this.#mayRegister) return;
    if (await this.#staysOnline()) throw new RelayError("superseded_elsewhere");
    this.#mayRegister = true;
  }

  /** Whether a refusal may pass by itself: the relay reads its keys file again within seconds of a change. Source: docs/protocol.md#keys. */
  mayPass(error: RelayError): boolean {
    if (this.#isOver || error.code !== "unknown_key") return false;
    this.#keyRefusedAt ??= performance.now();
    if (performance.now() - this.#keyRefusedAt >= FIRST_START.unknownKeyMs) return false;
    this.#tell(error);
    return true;
  }

  /** Says why no relay was reached, at every attempt of the connector's life; what cannot heal ends the first start alone. */
  async unreachable(): Promise<void> {
    const { signal } = this.#stopped;
    const error = (await probeAttempt(this.#options.address.websocket, signal)) ?? new RelayError("unreachable");
    if (signal.aborted) return;
    this.#tell(error);
    if (!this.#isOver && error.retry === "fix") this.#options.ended(error);
  }

  /** It is registered. */
  succeeded(): void {
    this.#isOver = true;
  }

  stop(): void {
    this.#stopped.abort();
  }

  #tell(error: RelayError): void {
    this.#failure = error;
    this.#options.failed(error);
  }

  /** With why the last attempt failed. */
  #timeout(): RelayError {
    const cause = this.#failure;
    const details = cause && { message: `No answer came in time. ${cause.message}`, hint: cause.hint, cause };
    return new RelayError("timeout", details);
  }

  /** Asks again before it says so: the relay may not have seen yet that the socket of a killed process is gone. */
  async #staysOnline(): Promise<boolean> {
    for (let left = FIRST_START.looks; left > 0; left -= 1) {
      const { status, retry_after_ms } = await this.#look();
      const waitMs = waitOf(retry_after_ms);
      const mayLookLater = waitMs !== undefined && waitMs <= FIRST_START.limitedMs;
      if (status !== "online" && !mayLookLater) return false;
      if (left > 1)
        await new Promise((resolve) => setTimeout(resolve, mayLookLater ? waitMs : FIRST_START.lookAgainMs));
    }
    return true;
  }

  /** The relay's answer; empty for what cannot be looked up, which is not held against the start. */
  async #look(): Promise<Readonly<Record<string, unknown>>> {
    try {
      const { text } = await answerTo(this.#presenceUrl, FIRST_START.look, this.#stopped.signal);
      return membersOf(parseJson(text));
    } catch {
      return {};
    }
  }
}
