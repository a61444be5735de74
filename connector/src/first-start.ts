import type { RelayAddress } from "./address.ts";
import { probeAttempt } from "./attempt-probe.ts";
import { jitteredMs } from "./backoff.ts";
import { RelayError } from "./errors.ts";
import { membersOf } from "./frames.ts";
import { answerTo } from "./http-answer.ts";
import { FIRST_START, RETRY_AFTER_MS } from "./limits.ts";
import type { StartOptions } from "./options.ts";
import { parseJson } from "./parse-json.ts";
import { pause } from "./pause.ts";
import { problemIn } from "./problem.ts";
import type { JsonObject } from "./types.ts";

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
  /** Whether another connection has the agent: found out once, whatever becomes of the connection that waits for it. */
  #isElsewhere: Promise<boolean> | undefined;
  #isOver = false;
  #keyRefusedAt: number | undefined;
  #failure: RelayError | undefined;

  constructor(options: FirstStartOptions) {
    const { agent, address, takeOver } = options;
    this.#options = options;
    this.#presenceUrl = `${address.base}/api/onboarding/check-online?agent_id=${encodeURIComponent(agent)}`;
    if (takeOver) this.#isElsewhere = Promise.resolve(false);
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
    this.#isElsewhere ??= this.#staysOnline();
    if (await this.#isElsewhere) throw new RelayError("superseded_elsewhere");
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

  /**
   * Asks again before it says so: the relay may not have seen yet that the socket of a killed process is gone. What the relay
   * cannot tell for the moment says nothing of another connection, and is asked again until the start ends.
   */
  async #staysOnline(): Promise<boolean> {
    const { signal } = this.#stopped;
    let timesOnline = 0;
    while (!signal.aborted) {
      const answer = await this.#look();
      const waitMs = this.#waitIn(answer);
      if (waitMs === undefined) {
        if (answer.status !== "online") return false;
        timesOnline += 1;
        if (timesOnline === FIRST_START.looks) return true;
      }
      await pause(waitMs ?? FIRST_START.lookAgainMs, signal);
    }
    return false;
  }

  /** For how long the relay cannot tell; undefined when it did, and for what is not held against the start. */
  #waitIn(answer: JsonObject): number | undefined {
    const refusal = problemIn(answer);
    const { retry, retryAfterMs = RETRY_AFTER_MS } = refusal;
    if (retry !== "later" || retryAfterMs > FIRST_START.refusedMs) return undefined;
    this.#tell(refusal);
    return jitteredMs(retryAfterMs);
  }

  /** The relay's answer; empty for what cannot be looked up, which is not held against the start. */
  async #look(): Promise<JsonObject> {
    try {
      const { text } = await answerTo(this.#presenceUrl, FIRST_START.look, this.#stopped.signal);
      return membersOf(parseJson(text));
    } catch {
      return {};
    }
  }
}
