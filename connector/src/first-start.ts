import type { RelayAddress } from "./address.ts";
import { probeAttempt } from "./attempt-probe.ts";
import { jitteredMs } from "./backoff.ts";
import { checkOnlineUrl } from "./check-online.ts";
import { type ErrorDetails, RelayError } from "./errors.ts";
import { membersOf, textOf } from "./frames.ts";
import { answerTo } from "./http-answer.ts";
import { FIRST_START, MAX_TIMER_MS, RETRY_AFTER_MS } from "./limits.ts";
import type { StartOptions } from "./options.ts";
import { parseJson } from "./parse-json.ts";
import { pause } from "./pause.ts";
import { problemIn } from "./problem.ts";
import type { JsonObject } from "./types.ts";

export interface FirstStartOptions {
  readonly agent: string;
  readonly address: RelayAddress;
  readonly takeOver: boolean;
  /** How long a start may take that is told nothing else. */
  readonly timeoutMs: number | undefined;
  /** An attempt failed. */
  readonly failed: (error: RelayError) => void;
  /** No further attempt may follow. */
  readonly ended: (error: RelayError) => void;
}

/** What is said of another connection that has the agent. */
type Elsewhere = Pick<ErrorDetails, "message">;

/** @param iso since when, as the relay tells it. */
function elsewhereSince(iso: unknown): Elsewhere {
  const since = new Date(textOf(iso) ?? Number.NaN);
  if (Number.isNaN(since.getTime())) return {};
  return {
    message: `The agent has been online over another connection since ${since.toISOString()}, and this start would end that.`,
  };
}

/** What is different until the agent is registered for the first time. */
export class FirstStart {
  readonly #options: FirstStartOptions;
  readonly #presenceUrl: string;
  readonly #stopped = new AbortController();
  /** Whether another connection has the agent: found out once, whatever becomes of the connection that waits for it. */
  #elsewhere: Promise<Elsewhere | undefined> | undefined;
  #isOver = false;
  #keyRefusedAt: number | undefined;
  #failure: RelayError | undefined;

  constructor(options: FirstStartOptions) {
    const { agent, address, takeOver } = options;
    this.#options = options;
    this.#presenceUrl = checkOnlineUrl(address.base, agent);
    if (takeOver) this.#elsewhere = Promise.resolve(undefined);
  }

  /** Ends the start by the time or the signal. @returns what releases both. */
  limit({ signal, timeoutMs = this.#options.timeoutMs }: StartOptions): () => void {
    const { ended } = this.#options;
    const abort = () => ended(new RelayError("aborted", { cause: signal?.reason }));
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    // What no timer holds, which would end it at once, is no limit.
    const isLimited = timeoutMs !== undefined && timeoutMs <= MAX_TIMER_MS;
    const timer = isLimited ? setTimeout(() => ended(this.#timeout()), timeoutMs) : undefined;
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
    this.#elsewhere ??= this.#staysOnline();
    const elsewhere = await this.#elsewhere;
    if (elsewhere !== undefined) throw new RelayError("superseded_elsewhere", elsewhere);
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
  async #staysOnline(): Promise<Elsewhere | undefined> {
    const { signal } = this.#stopped;
    let timesOnline = 0;
    while (!signal.aborted) {
      const answer = await this.#look();
      const waitMs = this.#waitIn(answer);
      if (waitMs === undefined) {
        if (answer.status !== "online") return undefined;
        timesOnline += 1;
        if (timesOnline === FIRST_START.looks) return elsewhereSince(answer.online_since_iso);
      }
      await pause(waitMs ?? FIRST_START.lookAgainMs, signal);
    }
    return undefined;
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
