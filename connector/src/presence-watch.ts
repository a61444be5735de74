import { growingMs } from "./backoff.ts";
import { checkOnlinePath, presenceIn } from "./check-online.ts";
import { Concurrency } from "./credentials/concurrency.ts";
import { RelayError } from "./errors.ts";
import { membersOf, textOf, waitOf } from "./frames.ts";
import type { HttpClient } from "./http-client.ts";
import { ONLINE_LOOK } from "./limits.ts";
import { parseJson } from "./parse-json.ts";
import { pause } from "./pause.ts";
import { problemIn } from "./problem.ts";
import { targetNotOnline } from "./target-not-online.ts";
import type { JsonObject, Presence } from "./types.ts";

/** One agent, for all who wait for it. */
interface Watch {
  /** Aborted when it is online, or never can be. */
  readonly decided: AbortController;
  /** Aborted when nobody waits any more. */
  readonly over: AbortController;
  /** How it is, once it is online. */
  presence: Presence | undefined;
  /** Why it never can be. */
  refusal: RelayError | undefined;
  /** What check-online said last of how it is; undefined before it did. */
  status: string | undefined;
  waiting: number;
}

/** Waits for agents to come online: asks the relay's check-online again and again, for one agent once whoever waits. */
export class PresenceWatch {
  readonly #http: HttpClient;
  readonly #maxWaiting: number;
  readonly #watches = new Map<string, Watch>();
  readonly #atOnce = new Concurrency(ONLINE_LOOK.atOnce);
  #waiting = 0;

  constructor(http: HttpClient, maxWaiting: number) {
    this.#http = http;
    this.#maxWaiting = maxWaiting;
  }

  /**
   * Resolves when what is sent to the agent would reach it, or, with undefined, when the signal aborts. Rejects with `target_not_online`
   * after that time, with `timeout` when check-online did not answer in it, at once with its refusal, and with `queue_full`.
   */
  async untilOnline(agent: string, ms: number, signal: AbortSignal): Promise<Presence | undefined> {
    if (this.#waiting >= this.#maxWaiting) throw new RelayError("queue_full");
    const watch = this.#watches.get(agent) ?? this.#begin(agent);
    this.#waiting += 1;
    watch.waiting += 1;
    await pause(ms, AbortSignal.any([signal, watch.decided.signal]));
    this.#waiting -= 1;
    watch.waiting -= 1;
    if (watch.waiting === 0) this.#end(agent, watch);
    if (watch.refusal !== undefined) throw watch.refusal;
    if (watch.decided.signal.aborted || signal.aborted) return watch.presence;
    if (watch.status !== undefined) throw targetNotOnline(watch.status);
    throw new RelayError("timeout", {
      message: "Whether the target is online is not known: check-online did not answer.",
    });
  }

  #begin(agent: string): Watch {
    const [decided, over] = [new AbortController(), new AbortController()];
    const watch = { decided, over, presence: undefined, refusal: undefined, status: undefined, waiting: 0 };
    this.#watches.set(agent, watch);
    void this.#lookAgain(agent, watch);
    return watch;
  }

  #end(agent: string, watch: Watch): void {
    watch.over.abort();
    if (this.#watches.get(agent) === watch) this.#watches.delete(agent);
  }

  async #lookAgain(agent: string, watch: Watch): Promise<void> {
    const { signal } = watch.over;
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const answer = await this.#atOnce.run(() => this.#look(agent, signal));
      const { can_deliver_realtime: isOnline, status, retry_after_ms } = answer;
      watch.refusal = refusalIn(answer);
      watch.presence = isOnline === true ? presenceIn(agent, answer) : undefined;
      if (watch.presence !== undefined || watch.refusal !== undefined) {
        this.#watches.delete(agent);
        watch.decided.abort();
        return;
      }
      if (isOnline === false) watch.status = textOf(status) ?? "offline";
      await pause(Math.max(waitOf(retry_after_ms) ?? 0, growingMs(attempt, ONLINE_LOOK.wait)), signal);
    }
  }

  /** The members of the answer; none when there is no answer. Source: docs/protocol.md#presence. */
  async #look(agent: string, over: AbortSignal): Promise<JsonObject> {
    try {
      const { text } = await this.#http.ask(checkOnlinePath(agent), ONLINE_LOOK.answer, over);
      return membersOf(parseJson(text));
    } catch {
      return {};
    }
  }
}

/** What no repetition changes, such as an id that is none. */
function refusalIn(answer: JsonObject): RelayError | undefined {
  return answer.retry === "fix" || answer.retry === "never" ? problemIn(answer) : undefined;
}
