import { types } from "node:util";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { CommandTimeoutError } from "./client.ts";
import { REDIS_LIMITS } from "./limits.ts";

/** Why a link takes no commands. The message holds nothing of what was sent, and no address or password. */
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

/** What to do about a link that is down. */
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
 * Kinds that a call can fail with and that end its connection: after a silence, what comes next is refused at once, not
 * after a silence of its own; where Redis is not what the service needs, everything is refused, and /ready says why.
 */
const ENDING_KINDS: ReadonlySet<RedisDownKind> = new Set(["timeout", "noperm", "readonly"]);

/**
 * Milliseconds until the next attempt. While Redis is away attempts stay frequent, so that recovery is fast; while it is
 * there but cannot be used, the pauses double. Both are spread, so that pods do not come back at the same moment.
 * @param attempt how many connections were closed since the link was last up, this one counted.
 */
export function retryDelayMs(attempt: number, kind: RedisDownKind): number {
  if (PASSING_KINDS.has(kind)) return Math.min(attempt * 50, REDIS_LIMITS.reconnectMaxMs) + Math.random() * 50;
  const longest = Math.min(50 * 2 ** attempt, REDIS_LIMITS.misconfiguredRetryMaxMs);
  return longest * (0.5 + Math.random() / 2);
}

/** What a failure means for the link on which it happened. */
export function linkDown(failure: unknown): LinkDownError {
  if (failure instanceof LinkDownError) return failure;
  if (failure instanceof ServiceError && failure.cause !== undefined) return linkDown(failure.cause);
  return new LinkDownError(kindOf(failure), reasonOf(failure));
}

/**
 * True for a call of which Redis did nothing, and will not: the link was down, Redis came to it too late, or does not serve its
 * slot.
 */
export function isUndone(failure: unknown): boolean {
  if (!(failure instanceof ServiceError)) return false;
  const { cause } = failure;
  return cause instanceof LinkDownError || cause instanceof LateCallError || isUnserved(failure);
}

/** True for a call that a node of a cluster refused since the slot of its keys is elsewhere, on its way, or nobody's. */
export function isUnserved(failure: unknown): boolean {
  return failure instanceof ServiceError && linkDown(failure).kind === "slots";
}

/** True for a call that a node of a cluster refused as it would any: it does not reach most primaries, and may be replaced. */
export function isCutOff(failure: unknown): boolean {
  return linkDown(failure).message.startsWith("CLUSTERDOWN The cluster is down");
}

/** Takes it that a node of a cluster does not have a slot: another one has it. @throws any other failure. */
export function unlessElsewhere(failure: unknown): void {
  if (linkDown(failure).kind !== "slots") throw failure;
}

/** True for a failed call whose connection is given up. */
export function endsConnection(kind: RedisDownKind): boolean {
  return ENDING_KINDS.has(kind);
}

/** True for a state that lasts until somebody changes a setting. */
export function isMisconfigured(kind: RedisDownKind): boolean {
  return kind !== "other" && !PASSING_KINDS.has(kind);
}

/**
 * Of the reasons of several links the one to tell: what lasts until somebody changes a setting, else what a server said, else a
 * silence; null when there is none. Pure.
 */
export function mostTelling(kinds: readonly (RedisDownKind | null)[]): RedisDownKind | null {
  const down = kinds.filter((kind) => kind !== null);
  const isSaid = (kind: RedisDownKind) => kind !== "refused" && kind !== "timeout";
  return down.find(isMisconfigured) ?? down.find(isSaid) ?? down[0] ?? null;
}

/** What may be logged of a failure. Redis quotes the arguments of a command that it does not know, and tells where slots are. */
export function reasonOf(failure: unknown): string {
  if (!types.isNativeError(failure)) return "unknown";
  if (isSocketError(failure)) return failure.code;
  return failure.message.split(/,? with args beginning with|(?<=^(?:MOVED|ASK)) /, 1)[0] as string;
}

/** What the first word of an answer of Redis means. */
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
  // Redis 7.0 says it in a sentence when a script may not do what it does.
  if (/\bNOPERM\b|\bACL failure\b|^ERR The user executing the script can't\b/.test(failure.message)) return "noperm";
  return "other";
}

/** An error of the operating system, such as ECONNREFUSED or EAI_AGAIN; its message names the address. */
function isSocketError(failure: Error): failure is Error & { code: string } {
  return "code" in failure && typeof failure.code === "string" && /^E(?!RR_)[A-Z0-9_]+$/.test(failure.code);
}

/** Whether a link is up, or why it is down: what is logged of it, and the pause before its next attempt, follow from that. */
export class LinkState {
  readonly #link: string;
  readonly #logger: Logger;
  #down: LinkDownError | null = new LinkDownError("refused", "not connected yet");
  /** What was logged last. */
  #reported: RedisDownKind | "up" | undefined;
  /** Connections that closed since the link was last up, or was last up for long. */
  #attempts = 0;
  /** When the link last went up, monotonic ms. */
  #upAt = 0;
  #ended = false;

  constructor(link: string, logger: Logger) {
    this.#link = link;
    this.#logger = logger;
  }

  /** Why the link is down; null while it is up. */
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
    // A silence says nothing of the settings that Redis refused before it.
    if (this.#down !== null && isMisconfigured(this.#down.kind) && down.kind === "timeout") return;
    this.#down = down;
    // A setting that only a call finds wrong, not the set-up, would otherwise have the link come and go without pause.
    const upForMs = performance.now() - this.#upAt;
    const isSettled = upForMs >= REDIS_LIMITS.misconfiguredRetryMaxMs || !isMisconfigured(this.#down.kind);
    if (wasUp && isSettled) this.#attempts = 0;
    this.#report();
  }

  /** From here on nothing is logged. */
  end(): void {
    this.#ended = true;
  }

  /** Milliseconds until the next attempt. To be asked once a connection that closed. */
  nextDelayMs(): number {
    this.#attempts += 1;
    return retryDelayMs(this.#attempts, this.#down?.kind ?? "refused");
  }

  /**
   * One line a change of state: attempts that fail like the one before are not told again. Who was told that the link is down is
   * told that it is up, too; that it went up at the start is news to nobody.
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
 * What a service does when Redis is usable again, where several primaries come and go: all of it runs after each that came
 * back, once at a time, and again after a pause while some of it fails.
 */
export class UsableListeners {
  readonly #listeners: (() => Promise<void>)[] = [];
  readonly #done: () => void;
  #isRunning = false;
  #isDue = false;
  #isStopped = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param done called when all of it was done and nothing came back meanwhile. */
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
