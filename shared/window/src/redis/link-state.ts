import { types } from "node:util";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { CommandTimeoutError } from "./client.ts";
import { REDIS_LIMITS } from "./redis-limits.ts";

/** Why a link takes no commands. The message holds no sent data, no address and no password. */
export class LinkDownError extends Error {
  readonly kind: RedisDownKind;

  constructor(kind: RedisDownKind, message: string) {
    super(message);
    this.name = "LinkDownError";
    this.kind = kind;
  }
}

/** Redis came to a call after its deadline, and did nothing. */
export class LateCallError extends Error {
  constructor() {
    super("Redis came to the call after its deadline");
    this.name = "LateCallError";
  }
}

/** Advice about a link that is down. */
export const LINK_DOWN_ADVICE: Readonly<Record<RedisDownKind, string>> = {
  auth: "Fix the user and password in REDIS_URL: Redis refuses them.",
  refused: "Wait until Redis is back, the service goes on by itself; if Redis runs, fix the address in REDIS_URL.",
  noperm: "Give the Redis user the commands, keys and channels that deploy/redis/users.acl lists for this service.",
  version: `Run Redis ${REDIS_LIMITS.oldestMajorVersion}.0 or newer.`,
  eviction: "Set maxmemory-policy noeviction in Redis: evicting a key of the replay guard would let a replay through.",
  timeout:
    "Wait until Redis answers, the service goes on by itself; if it stays silent, look at its load and its network.",
  partitions:
    "Set RELAY_PARTITIONS to one number in all services, then open a window with it: npm run window:reset -- --force.",
  layout:
    "Run services of one version: the window is of another one, with which this one cannot share it. Open a window with this version once the others have ended: npm run window:reset.",
  cluster:
    "Set REDIS_URL to redis-cluster://host:port,host:port for a Redis Cluster, to redis://host:port for one Redis without cluster-enabled.",
  coverage:
    "Set cluster-require-full-coverage no on every node of the Redis Cluster: it refuses all slots because some are not served. Then bring these back.",
  slots:
    "Wait until the slots have been moved, or a replica has taken the place of a lost primary. If it lasts, look at CLUSTER INFO: where most primaries are lost or out of reach the others refuse everything; bring these back.",
  readonly: "Set REDIS_URL to the primary: this Redis is a replica, which takes no writes.",
  disk: 'Turn persistence off in Redis (save "", appendonly no): it refuses writes because it cannot save to its disk.',
  loading: 'Wait until Redis has loaded its data. The relay\'s Redis should keep none: save "", appendonly no.',
  full: "Raise maxmemory of Redis: it is full and refuses writes. Room also comes back by itself, as entries expire.",
  other: "Read the service's log: it says what Redis answered.",
};

/** Kinds that end without a change of settings. */
const PASSING_KINDS: ReadonlySet<RedisDownKind> = new Set(["refused", "timeout", "loading", "full", "slots"]);

/**
 * Kinds of call failures that end the connection. After a timeout, the next calls are refused at once, not after a
 * timeout of their own. If Redis is not what the service needs, everything is refused, and /ready says why.
 */
const ENDING_KINDS: ReadonlySet<RedisDownKind> = new Set(["timeout", "noperm", "readonly"]);

/**
 * Ms until the next attempt. While Redis is out of reach, attempts stay frequent for a fast recovery. While Redis is in
 * reach but unusable, the pauses double. Random parts keep pods from coming back at the same moment.
 * @param attempt number of connections that closed since the link was last up, including this one.
 */
export function retryDelayMs(attempt: number, kind: RedisDownKind): number {
  if (PASSING_KINDS.has(kind)) return Math.min(attempt * 50, REDIS_LIMITS.reconnectMaxMs) + Math.random() * 50;
  const longest = Math.min(50 * 2 ** attempt, REDIS_LIMITS.misconfiguredRetryMaxMs);
  return longest * (0.5 + Math.random() / 2);
}

/** The state of a link after a failure. */
export function linkDown(failure: unknown): LinkDownError {
  if (failure instanceof LinkDownError) return failure;
  if (failure instanceof ServiceError && failure.cause !== undefined) return linkDown(failure.cause);
  return new LinkDownError(kindOf(failure), reasonOf(failure));
}

/**
 * True for a call that Redis did not carry out and never will. The link was down, Redis came to the call too late, or
 * Redis does not serve its slot.
 */
export function isUndone(failure: unknown): boolean {
  if (!(failure instanceof ServiceError)) return false;
  const { cause } = failure;
  return cause instanceof LinkDownError || cause instanceof LateCallError || isUnserved(failure);
}

/** True if a cluster node refused a call because the slot is elsewhere, is moving, or has no primary. */
export function isUnserved(failure: unknown): boolean {
  return failure instanceof ServiceError && linkDown(failure).kind === "slots";
}

/** True if a cluster node refuses every call: it does not reach most primaries, and may be replaced. */
export function isCutOff(failure: unknown): boolean {
  return linkDown(failure).message.startsWith("CLUSTERDOWN The cluster is down");
}

/**
 * Ignores the refusal of a cluster node that does not have the slot: another node has it.
 * @throws any other failure.
 */
export function unlessElsewhere(failure: unknown): void {
  if (linkDown(failure).kind !== "slots") throw failure;
}

/** True for a kind of failure that makes the link give up the connection. */
export function endsConnection(kind: RedisDownKind): boolean {
  return ENDING_KINDS.has(kind);
}

/** True for a state that lasts until an operator changes a setting. */
function isMisconfigured(kind: RedisDownKind): boolean {
  return kind !== "other" && !PASSING_KINDS.has(kind);
}

/**
 * The most useful of several links' reasons: first a state that needs a changed setting, then an answer of a server,
 * then no answer. Null if there is none. Pure.
 */
export function mostTelling(kinds: readonly (RedisDownKind | null)[]): RedisDownKind | null {
  const down = kinds.filter((kind) => kind !== null);
  const isSaid = (kind: RedisDownKind) => kind !== "refused" && kind !== "timeout";
  return down.find(isMisconfigured) ?? down.find(isSaid) ?? down[0] ?? null;
}

/**
 * The loggable part of a failure. Redis quotes the arguments of an unknown command, and the addresses of slots. This
 * drops both.
 */
export function reasonOf(failure: unknown): string {
  if (!types.isNativeError(failure)) return "unknown";
  if (isSocketError(failure)) return failure.code;
  return failure.message.split(/,? with args beginning with|(?<=^(?:MOVED|ASK)) /, 1)[0] as string;
}

/** Kinds by the first word of an answer of Redis. */
const ANSWERS: ReadonlyMap<string, RedisDownKind> = new Map([
  ["OOM", "full"],
  ["READONLY", "readonly"],
  ["MISCONF", "disk"],
  ["LOADING", "loading"],
  ["MOVED", "slots"],
  ["ASK", "slots"],
  ["TRYAGAIN", "slots"],
  ["CLUSTERDOWN", "slots"],
]);

function kindOf(failure: unknown): RedisDownKind {
  if (!types.isNativeError(failure)) return "other";
  if (failure instanceof CommandTimeoutError || failure instanceof LateCallError) return "timeout";
  if (isSocketError(failure)) return failure.code === "ETIMEDOUT" ? "timeout" : "refused";
  if (/^(?:WRONGPASS|NOAUTH|ERR invalid password)\b/.test(failure.message)) return "auth";
  if (failure.message.startsWith("ERR This instance has cluster support disabled")) return "cluster";
  const answered = ANSWERS.get(/^[A-Z]+\b/.exec(failure.message)?.[0] ?? "");
  if (answered !== undefined) return answered;
  // Redis 7.0 answers with a sentence if a script may not run a command.
  if (/\bNOPERM\b|\bACL failure\b|^ERR The user executing the script can't\b/.test(failure.message)) return "noperm";
  return "other";
}

/** An error of the operating system, such as ECONNREFUSED or EAI_AGAIN. Its message names the address. */
function isSocketError(failure: Error): failure is Error & { code: string } {
  return "code" in failure && typeof failure.code === "string" && /^E(?!RR_)[A-Z0-9_]+$/.test(failure.code);
}

/** Whether a link is up, or why it is down. The log lines and the pause before the next attempt follow from it. */
export class LinkState {
  readonly #link: string;
  readonly #logger: Logger;
  #down: LinkDownError | null = new LinkDownError("refused", "not connected yet");
  /** The state in the last log line. */
  #reported: RedisDownKind | "up" | undefined;
  /** Connections that closed since the link was last up, or last up for long. */
  #attempts = 0;
  /** Monotonic ms: when the link last went up. */
  #upAt = 0;
  #ended = false;

  constructor(link: string, logger: Logger) {
    this.#link = link;
    this.#logger = logger;
  }

  /** Why the link is down. Null while it is up. */
  get down(): LinkDownError | null {
    return this.#down;
  }

  goUp(): void {
    this.#upAt = performance.now();
    this.#down = null;
    this.#report();
  }

  goDown(cause: unknown): void {
    const wasUp = this.#down === null;
    const down = linkDown(cause);
    // A timeout does not disprove the wrong setting that Redis reported before it.
    if (this.#down !== null && isMisconfigured(this.#down.kind) && down.kind === "timeout") return;
    this.#down = down;
    // If only calls find a wrong setting, and not the set-up, the link would come and go without a pause.
    const upForMs = performance.now() - this.#upAt;
    const isSettled = upForMs >= REDIS_LIMITS.misconfiguredRetryMaxMs || !isMisconfigured(this.#down.kind);
    if (wasUp && isSettled) this.#attempts = 0;
    this.#report();
  }

  /** Stops the logging. */
  end(): void {
    this.#ended = true;
  }

  /** Ms until the next attempt. Call it once for each connection that closed. */
  nextDelayMs(): number {
    this.#attempts += 1;
    return retryDelayMs(this.#attempts, this.#down?.kind ?? "refused");
  }

  /**
   * Logs one line for each change of state, and none for attempts that fail as the last one did. After a line "down"
   * the line "up" has the same level. The first "up" at the start is only information.
   */
  #report(): void {
    const state = this.#down?.kind ?? "up";
    if (this.#ended || state === this.#reported) return;
    const upLevel = this.#reported === undefined ? "info" : "warn";
    this.#reported = state;
    if (this.#down === null) this.#logger[upLevel]({ link: this.#link }, "redis link is up");
    else this.#logger.warn({ link: this.#link, kind: state, reason: this.#down.message }, "redis link is down");
  }
}

/**
 * Work of a service each time Redis is usable again, if it has several primaries. All listeners run after each
 * primary that came back, one run at a time. If one fails, they run again after a pause.
 */
export class UsableListeners {
  readonly #listeners: (() => Promise<void>)[] = [];
  readonly #done: () => void;
  #isRunning = false;
  #isDue = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param done runs when all listeners succeeded and no primary came back in between. */
  constructor(done: () => void) {
    this.#done = done;
  }

  add(listener: () => Promise<void>): void {
    this.#listeners.push(listener);
  }

  async run(): Promise<void> {
    this.#isDue = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#isDue) {
      this.#isDue = false;
      const ends = await Promise.allSettled(this.#listeners.map(async (listener) => await listener()));
      if (ends.some(({ status }) => status === "rejected")) this.#runLater();
      else if (!this.#isDue) this.#done();
    }
    this.#isRunning = false;
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #runLater(): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    const pauseMs = REDIS_LIMITS.missingSlotsMs * (0.5 + Math.random());
    this.#timer = setTimeout(() => void this.run(), pauseMs);
  }
}
