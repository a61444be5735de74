import type { RequestId } from "@modelcontextprotocol/sdk/types.js";
import { keepNewest } from "../../keep-newest.ts";
import { Call } from "./call.ts";

/** Of so many answered calls a cancellation still counts: it crossed the answer, which its client then ignores. */
const MAX_CROSSED = 4;

/** The calls of one client. */
export class Calls {
  readonly #open = new Map<RequestId, Call>();
  /** Oldest first. */
  readonly #answered = new Map<RequestId, Call>();

  get areOpen(): boolean {
    return this.#open.size > 0;
  }

  isOpen(id: RequestId): boolean {
    return this.#open.has(id);
  }

  /** The call of that id, which is open from now on. */
  open(id: RequestId): Call {
    const call = this.#open.get(id) ?? new Call();
    this.#open.set(id, call);
    return call;
  }

  /** The open call of that id. One that was cancelled before it was looked for has ended. */
  of(id: RequestId): Call {
    const call = this.#open.get(id) ?? new Call();
    if (!this.isOpen(id)) call.cancel();
    return call;
  }

  answered(id: RequestId): void {
    const call = this.#open.get(id);
    if (call === undefined) return;
    this.#open.delete(id);
    this.#answered.delete(id);
    keepNewest(this.#answered, id, call, MAX_CROSSED);
    call.answered();
  }

  cancel(id: RequestId): void {
    const call = this.#open.get(id) ?? this.#answered.get(id);
    this.#open.delete(id);
    this.#answered.delete(id);
    call?.cancel();
  }

  /** The client is gone. */
  end(): void {
    for (const id of [...this.#open.keys()]) this.cancel(id);
  }
}
