import { backoffMs, spreadMs } from "./backoff.ts";
import type { RelayError } from "./errors.ts";
import type { Frame, HelloFrame } from "./frames.ts";
import { BACKOFF, RETIRED_MS } from "./limits.ts";
import type { Link, LinkEnd, LinkEvents } from "./link.ts";

export interface ReconnectorEvents {
  /** From now on this link is the connection, whichever was before it. */
  readonly online: (link: Link) => void;
  /** There is no connection; another attempt follows. */
  readonly offline: (end: LinkEnd, retryInMs: number) => void;
  readonly frame: (frame: Exclude<Frame, HelloFrame>) => void;
  readonly troubled: (error: RelayError) => void;
  /** There will be none any more. */
  readonly ended: (error: RelayError) => void;
}

/**
 * Keeps one registered link. When its pod drains, the next one is registered first, and only then the old one let go:
 * it is read until the relay closes it, since it may still hold what senders were told was delivered.
 */
export class Reconnector {
  readonly #makeLink: (events: LinkEvents) => Link;
  readonly #events: ReconnectorEvents;
  #current: Link | undefined;
  #next: Link | undefined;
  readonly #retired = new Map<Link, ReturnType<typeof setTimeout>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dueAt = 0;
  #attempt = 0;
  #onlineAt = 0;

  constructor(makeLink: (events: LinkEvents) => Link, events: ReconnectorEvents) {
    this.#makeLink = makeLink;
    this.#events = events;
  }

  start(): void {
    this.#connect();
  }

  /** Resolves when all sockets are gone. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    for (const timer of this.#retired.values()) clearTimeout(timer);
    const links = [this.#current, this.#next, ...this.#retired.keys()];
    this.#retired.clear();
    await Promise.all(links.map((link) => link?.close()));
  }

  /** Asks the relay at once whether the current link still has its agent. */
  check(): void {
    this.#current?.check();
  }

  #connect(): void {
    this.#timer = undefined;
    this.#next = this.#makeLink({
      registered: (link) => this.#registered(link),
      frame: (link, frame) => this.#receive(link, frame),
      troubled: (error) => this.#events.troubled(error),
      ended: (link, end) => this.#linkEnded(link, end),
    });
    this.#next.open();
  }

  #registered(link: Link): void {
    const former = this.#current;
    if (former !== undefined) this.#retire(former);
    this.#current = link;
    this.#next = undefined;
    this.#onlineAt = performance.now();
    this.#events.online(link);
  }

  #receive(link: Link, frame: Exclude<Frame, HelloFrame>): void {
    const isCurrent = link === this.#current;
    if (frame.frame === "notice" && frame.notice.kind === "draining" && isCurrent) {
      this.#reconnectIn(spreadMs(frame.notice.reconnectAfterMs));
    }
    // A link that was replaced may not speak for the agent any more: only what it accepted and delivered counts.
    const counts = isCurrent || frame.frame === "ack" || frame.frame === "deliver";
    if (counts && !this.#isReplaced(frame)) this.#events.frame(frame);
  }

  /** The relay's word that a link was superseded, by the very link that is to take its place. */
  #isReplaced(frame: Frame): boolean {
    return frame.frame === "notice" && frame.notice.kind === "superseded" && this.#next !== undefined;
  }

  #linkEnded(link: Link, end: LinkEnd): void {
    const retired = this.#retired.get(link);
    if (retired !== undefined) {
      clearTimeout(retired);
      this.#retired.delete(link);
      return;
    }
    const isReplaced = link === this.#current && this.#next !== undefined && end.error?.code === "superseded";
    if (end.error !== undefined && !isReplaced) {
      this.#events.ended(end.error);
      return;
    }
    if (link === this.#next) this.#next = undefined;
    else this.#lostCurrent();
    const retryInMs = this.#reconnectIn(backoffMs(this.#attempt));
    if (this.#current === undefined && !isReplaced) this.#events.offline(end, retryInMs);
  }

  /** A connection that held for a while starts the waits anew; one that is lost again at once does not. */
  #lostCurrent(): void {
    this.#current = undefined;
    if (performance.now() - this.#onlineAt >= BACKOFF.capMs) this.#attempt = 0;
  }

  /** One attempt at a time. @returns ms until it. */
  #reconnectIn(ms: number): number {
    if (this.#timer === undefined && this.#next === undefined) {
      this.#attempt += 1;
      this.#dueAt = performance.now() + ms;
      this.#timer = setTimeout(() => this.#connect(), ms);
    }
    return Math.max(0, this.#dueAt - performance.now());
  }

  #retire(link: Link): void {
    const dismiss = () => {
      this.#retired.delete(link);
      void link.close();
    };
    this.#retired.set(link, setTimeout(dismiss, RETIRED_MS));
  }
}
