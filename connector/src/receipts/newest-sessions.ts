import { SESSION_RECORDS } from "../limits.ts";
import type { Voucher } from "./receipt.ts";

/** An envelope of a session that this agent signed, or verified. */
export interface Kept {
  /** Its signedBytes: what a parsed envelope costs in memory, nobody can say. */
  readonly bytes: Uint8Array;
  /** Of a request: what a decision on it carries. */
  readonly digest: string;
  /** What vouched for its key. */
  readonly voucher: Voucher | undefined;
}

export interface SessionRecord {
  readonly requests: readonly Kept[];
  readonly decisions: readonly Kept[];
}

/** The sessions of which something was kept last, bounded in number and in bytes. */
export class NewestSessions {
  /** By session id, the oldest first. */
  readonly #records = new Map<string, SessionRecord>();
  #bytes = 0;

  get(sessionId: string): SessionRecord | undefined {
    return this.#records.get(sessionId);
  }

  /** In place of what there is of the session. The oldest of the others make room. */
  put(sessionId: string, record: SessionRecord): void {
    this.delete(sessionId);
    this.#records.set(sessionId, record);
    this.#bytes += sizeOf(record);
    for (const oldest of this.#records.keys()) {
      if (this.#records.size <= SESSION_RECORDS.max && this.#bytes <= SESSION_RECORDS.maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(sessionId: string): void {
    const record = this.#records.get(sessionId);
    if (record === undefined) return;
    this.#records.delete(sessionId);
    this.#bytes -= sizeOf(record);
  }
}

function sizeOf({ requests, decisions }: SessionRecord): number {
  const sizes = [...requests, ...decisions].map(({ bytes, voucher }) => bytes.length + (voucher?.token.length ?? 0));
  return sizes.reduce((sum, size) => sum + size, 0);
}
