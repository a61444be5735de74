import { growingMs, jitteredMs } from "./backoff.ts";
import { presenceOf } from "./check-online.ts";
import { RelayError } from "./errors.ts";
import { textOf } from "./frames.ts";
import type { HttpClient } from "./http-client.ts";
import { isNotYetKnown } from "./late-key.ts";
import { FIRST_START, MAX_TIMER_MS, ONLINE_LOOK, RETRY_AFTER_CAP_MS } from "./limits.ts";
import { isRefusedByProxy, isRefusedUpgrade } from "./network-errors.ts";
import type { StartOptions } from "./options.ts";
import { pause } from "./pause.ts";
import { keyRefusal } from "./self-test.ts";
import type { Presence } from "./types.ts";

export interface FirstStartOptions {
  readonly agent: string;
  readonly http: HttpClient;
  readonly takeOver: boolean;
  /** How long a start may take that is told nothing else. */
  readonly timeoutMs: number | undefined;
  /** An attempt failed. */
  readonly failed: (error: RelayError) => void;
  /** No further attempt may follow. */
  readonly ended: (error: RelayError) => void;
}

/** Another connection has the agent. @param iso since when, as the relay tells it. */
function elsewhereSince(iso: unknown): RelayError {
  const since = new Date(textOf(iso) ?? Number.NaN);
  if (Number.isNaN(since.getTime())) return new RelayError("superseded_elsewhere");
  return new RelayError("superseded_elsewhere", {
    message: `The agent has been online over another connection since ${since.toISOString()}, and this start would end that.`,
  });
}

const SHORT_HINT = "Give the start more time, or see whether a relay answers there.";

/** What is different until the agent is registered for the first time. */
export class FirstStart {
  readonly #options: FirstStartOptions;
  readonly #stopped = new AbortController();
  /** Why nothing may be taken over: found out once, whatever becomes of the connection that waits for it. */
  #bar: Promise<RelayError | undefined> | undefined;
  #isOver = false;
  #keyRefusedAt: number | undefined;
  /** By performance.now(): since when something else answers, without an answer of the relay in between. */
  #strangeSince: number | undefined;
  /** The same of the upgrade. */
  #refusedSince: number | undefined;
  /** However long something else answers in the relay's place. */
  #isEndless = false;
  #passing: RelayError | undefined;
  #failure: RelayError | undefined;

  constructor(options: FirstStartOptions) {
    this.#options = options;
    if (options.takeOver) this.#bar = Promise.resolve(undefined);
  }

  /** Ends the start by the time or the signal. @returns what releases both. */
  limit({ signal, timeoutMs = this.#options.timeoutMs }: StartOptions): () => void {
    const { ended } = this.#options;
    this.#isEndless ||= timeoutMs === Number.POSITIVE_INFINITY;
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
   * reconnects: what is online then may be its own connection. Rejects with `superseded_elsewhere`, `not_a_relay`, or why the relay
   * would not take its key: whoever has not the agent's could take nothing over.
   * @param register makes the text of the register.
   */
  async beforeRegister(register: () => Promise<string>): Promise<void> {
    this.#refusedSince = undefined;
    this.#bar ??= this.#findBar();
    const bar = await this.#bar;
    if (bar === undefined) return;
    if (bar.code !== "superseded_elsewhere") throw bar;
    throw (await keyRefusal(this.#options.http, await register(), this.#stopped.signal)) ?? bar;
  }

  /** Whether a refusal may pass by itself, of what was added a moment ago. */
  mayPass(error: RelayError): boolean {
    if (this.#isOver || !isNotYetKnown(error.code, error.message)) return false;
    this.#keyRefusedAt ??= performance.now();
    if (performance.now() - this.#keyRefusedAt >= FIRST_START.unknownKeyMs) return false;
    this.#passing = error;
    this.#tell(error);
    return true;
  }

  /** Whether the same is tried again after this refusal. */
  triesAgain(error: RelayError): boolean {
    return this.#passing === error;
  }

  /** Whether an attempt that reached no relay for this reason ends the start: no further one can heal it. */
  isEndedBy(error: RelayError): boolean {
    if (this.#isOver || error.retry !== "fix") return false;
    return !this.#mayYetUpgrade(error) && !(this.#isEndless && isRefusedByProxy(error));
  }

  /** Says why no relay was reached, at every attempt of the connector's life. */
  unreachable(error: RelayError): void {
    this.#tell(error);
  }

  #mayYetUpgrade(error: RelayError): boolean {
    if (!isRefusedUpgrade(error)) return false;
    this.#refusedSince ??= performance.now();
    return this.#isEndless || performance.now() - this.#refusedSince < FIRST_START.refusedUpgradeMs;
  }

  /** Why the last attempt failed, since the agent was registered last. */
  get failure(): RelayError | undefined {
    return this.#failure;
  }

  /** It is registered. */
  succeeded(): void {
    this.#isOver = true;
    this.#failure = undefined;
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
    const why = cause?.message ?? `The relay at ${this.#options.http.base} has not answered.`;
    const message = `The time for the start is over. ${why}`;
    return new RelayError("timeout", { message, hint: cause?.hint ?? SHORT_HINT, ...(cause && { cause }) });
  }

  /**
   * Asks again before it says that another connection has the agent: the relay may not have seen yet that the socket of a killed
   * process is gone. What cannot be told for the moment is asked again until the start ends. What nobody tells for a while is a bar,
   * as at an address that has the websocket alone; an edge that is being changed may answer for its relay for a moment.
   */
  async #findBar(): Promise<RelayError | undefined> {
    const { signal } = this.#stopped;
    let [timesOnline, timesUntold] = [0, 0];
    while (!signal.aborted) {
      const seen = await this.#look();
      if (seen instanceof RelayError) {
        if (signal.aborted) return undefined;
        if (!this.#mayYetTell(seen)) return seen;
        this.#tell(seen);
        await pause(untilNextLook(seen, timesUntold), signal);
        timesUntold += 1;
        continue;
      }
      this.#strangeSince = undefined;
      if (seen.status !== "online") return undefined;
      timesOnline += 1;
      if (timesOnline === FIRST_START.looks) return elsewhereSince(seen.details.online_since_iso);
      await pause(FIRST_START.lookAgainMs, signal);
    }
    return undefined;
  }

  /** Whether another look may be answered otherwise. What is no relay counts once it has been there for a while. */
  #mayYetTell(seen: RelayError): boolean {
    const { code, retry } = seen;
    if (code === "not_a_relay") {
      this.#strangeSince ??= performance.now();
      return this.#isEndless || performance.now() - this.#strangeSince < FIRST_START.unknownKeyMs;
    }
    if (code !== "unreachable") this.#strangeSince = undefined;
    return retry === "later" || (this.#isEndless && isRefusedByProxy(seen));
  }

  /** How the agent is, or why nobody tells. */
  async #look(): Promise<Presence | RelayError> {
    const { agent, http } = this.#options;
    try {
      return await presenceOf(http, agent, ONLINE_LOOK.answer.timeoutMs, this.#stopped.signal);
    } catch (error) {
      if (error instanceof RelayError) return error;
      throw error;
    }
  }
}

/** As long as an answer asked for, of which a relay's own may be longer than an edge's; without one a wait that grows. */
function untilNextLook({ retryAfterMs }: RelayError, timesUntold: number): number {
  if (retryAfterMs === undefined) return growingMs(timesUntold, ONLINE_LOOK.wait);
  return jitteredMs(retryAfterMs, Math.max(retryAfterMs, RETRY_AFTER_CAP_MS));
}
