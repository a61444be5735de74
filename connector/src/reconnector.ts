import { backoffMs, jitteredMs } from "./backoff.ts";
import type { Connection, ConnectionEnd, ConnectionEvents } from "./connection.ts";
import type { RelayError } from "./errors.ts";
import type { Frame, HelloFrame } from "./frames.ts";
import { BACKOFF, DRAINING_CAP_MS, MAX_RETIRED, RETIRED_MS, RETRY_AFTER_CAP_MS } from "./limits.ts";

export interface ReconnectorEvents {
  readonly greeted: (hello: HelloFrame) => void;
  /** From now on envelopes go out on this connection. */
  readonly online: (connection: Connection) => void;
  /** There is no connection; another attempt follows. */
  readonly offline: (end: ConnectionEnd, retryInMs: number) => void;
  readonly frame: (frame: Exclude<Frame, HelloFrame>) => void;
  readonly presenceRefused: (error: RelayError) => void;
  /** True when another attempt after this error may help, though it ends a connection for good. */
  readonly mayReturn: (error: RelayError) => boolean;
  /** Before the attempt after such an error: false when nothing has changed, undefined when nobody could tell. */
  readonly hasChanged: (error: RelayError) => Promise<boolean | undefined>;
  /** There will be no further attempt. */
  readonly ended: (error: RelayError) => void;
}

/**
 * Keeps one registered connection. When its pod drains, the next connection is registered before the old one is retired.
 * A retired connection is read until the relay closes it: it may still bring envelopes whose senders were told that they
 * were delivered.
 */
export class Reconnector {
  readonly #createConnection: (events: ConnectionEvents) => Connection;
  readonly #events: ReconnectorEvents;
  #current: Connection | undefined;
  #next: Connection | undefined;
  readonly #retired = new Map<Connection, ReturnType<typeof setTimeout>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** By performance.now(), as all times here. */
  #dueAt = 0;
  /** Until then an answer in the place of a relay asked to be left alone. */
  #awayUntil = 0;
  #attempt = 0;
  #onlineAt = 0;
  /** What ended the last connection, when only a change can help. */
  #barredBy: RelayError | undefined;
  #hasStopped = false;

  constructor(createConnection: (events: ConnectionEvents) => Connection, events: ReconnectorEvents) {
    this.#createConnection = createConnection;
    this.#events = events;
  }

  start(): void {
    this.#connect();
  }

  /** Resolves when all sockets are gone. */
  async stop(): Promise<void> {
    this.#hasStopped = true;
    clearTimeout(this.#timer);
    for (const timer of this.#retired.values()) clearTimeout(timer);
    const connections = [this.#current, this.#next, ...this.#retired.keys()];
    this.#retired.clear();
    await Promise.all(connections.map((connection) => connection?.close()));
  }

  /** Asks the relay at once whether the current connection still owns the agent. */
  checkRegistration(): void {
    this.#current?.checkRegistration();
  }

  /** Presents a renewed credential: on the next connection where there is one, since the current one would take the agent back. */
  registerAgain(): void {
    (this.#next ?? this.#current)?.registerAgain();
  }

  #attemptNow(): void {
    if (this.#barredBy === undefined) this.#connect();
    else void this.#attemptChanged(this.#barredBy);
  }

  async #attemptChanged(error: RelayError): Promise<void> {
    const hasChanged = await this.#events.hasChanged(error);
    this.#timer = undefined;
    if (this.#hasStopped) return;
    if (hasChanged === undefined) return void this.#reconnectIn(backoffMs(this.#attempt));
    this.#barredBy = undefined;
    if (hasChanged) this.#connect();
    else this.#events.ended(error);
  }

  #connect(): void {
    this.#timer = undefined;
    this.#next = this.#createConnection({
      greeted: (hello) => this.#events.greeted(hello),
      registered: (connection) => this.#registered(connection),
      frame: (connection, frame) => this.#receive(connection, frame),
      presenceRefused: (error) => this.#events.presenceRefused(error),
      ended: (connection, end) => this.#connectionEnded(connection, end),
    });
    this.#next.open();
  }

  #registered(connection: Connection): void {
    const former = this.#current;
    if (former !== undefined) this.#retire(former);
    this.#current = connection;
    this.#next = undefined;
    this.#onlineAt = performance.now();
    this.#events.online(connection);
  }

  #receive(connection: Connection, frame: Exclude<Frame, HelloFrame>): void {
    const isCurrent = connection === this.#current;
    if (frame.frame === "notice" && frame.notice.kind === "draining" && isCurrent) {
      this.#forgetAttempts();
      const askedMs = Math.min(frame.notice.reconnectAfterMs, DRAINING_CAP_MS);
      this.#reconnectIn(Math.max(jitteredMs(askedMs), backoffMs(this.#attempt)));
    }
    // Of a retired connection only acks and deliveries count: its errors and notices are out of date.
    const isRelevant = isCurrent || frame.frame === "ack" || frame.frame === "deliver";
    if (isRelevant && !this.#isOwnTakeover(frame)) this.#events.frame(frame);
  }

  /** The notice that this connector's next connection has superseded its current one. */
  #isOwnTakeover(frame: Frame): boolean {
    return frame.frame === "notice" && frame.notice.kind === "superseded" && this.#next !== undefined;
  }

  #connectionEnded(connection: Connection, end: ConnectionEnd): void {
    const retired = this.#retired.get(connection);
    if (retired !== undefined) {
      clearTimeout(retired);
      this.#retired.delete(connection);
      return;
    }
    const isReplaced = connection === this.#current && this.#next !== undefined && end.error?.code === "superseded";
    if (end.error !== undefined && !isReplaced) {
      if (!this.#events.mayReturn(end.error)) {
        this.#events.ended(end.error);
        return;
      }
      // A listener of the error may have closed the connector.
      if (this.#hasStopped) return;
      this.#barredBy = end.error;
    }
    if (connection === this.#next) this.#next = undefined;
    else this.#lostCurrent();
    const now = performance.now();
    this.#awayUntil = Math.max(this.#awayUntil, now + jitteredMs(end.cause?.retryAfterMs ?? 0, RETRY_AFTER_CAP_MS));
    const waitMs = Math.max(backoffMs(this.#attempt), this.#awayUntil - now);
    this.#forgetWaitOver(waitMs);
    const retryInMs = this.#reconnectIn(waitMs);
    if (this.#current === undefined && !isReplaced) this.#events.offline(end, retryInMs);
  }

  #lostCurrent(): void {
    this.#current = undefined;
    this.#forgetAttempts();
  }

  /**
   * The backoff starts again only after a connection that lasted: a relay that loses or drains connections at once is asked
   * less often.
   */
  #forgetAttempts(): void {
    if (performance.now() - this.#onlineAt >= BACKOFF.capMs) this.#attempt = 0;
  }

  /** What a relay that drains asked for holds while its connection does: whoever has lost it waits no longer than others. */
  #forgetWaitOver(ms: number): void {
    if (this.#timer === undefined || this.#dueAt <= performance.now() + ms) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Schedules the next attempt, unless one is scheduled or under way. @returns ms until it. */
  #reconnectIn(ms: number): number {
    if (this.#timer === undefined && this.#next === undefined) {
      this.#attempt += 1;
      this.#dueAt = performance.now() + ms;
      this.#timer = setTimeout(() => this.#attemptNow(), ms);
    }
    return Math.max(0, this.#dueAt - performance.now());
  }

  #retire(connection: Connection): void {
    this.#retired.set(
      connection,
      setTimeout(() => this.#closeRetired(connection), RETIRED_MS),
    );
    const [oldest] = this.#retired.keys();
    if (oldest !== undefined && this.#retired.size > MAX_RETIRED) this.#closeRetired(oldest);
  }

  #closeRetired(connection: Connection): void {
    clearTimeout(this.#retired.get(connection));
    this.#retired.delete(connection);
    void connection.close();
  }
}
