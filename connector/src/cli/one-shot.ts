import type { Io } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { readIdentity } from "./identity.ts";
import type { Order, Receipt } from "./orders.ts";
import { jsonLine, Voice, writeLine } from "./output.ts";
import { RelayHttp } from "./relay-http.ts";
import { openRoute } from "./routes/open.ts";
import { receiptWords } from "./words.ts";

export interface OneShotOptions {
  readonly key?: string | undefined;
  readonly url?: string | undefined;
  readonly json?: boolean | undefined;
  readonly "take-over"?: boolean | undefined;
}

export interface OneShot {
  readonly isForGateway: boolean;
  /** What is to be said, once it is known that there is a way to say it. */
  readonly order: (http: RelayHttp) => Promise<Order>;
  /** What follows while the way is still open. @returns the exit code. */
  readonly after?: (receipt: Receipt, http: RelayHttp, voice: Voice) => Promise<number>;
}

/** Says one thing, prints what became of it, and ends. @throws {Failure | RelayError} */
export async function sayOnce(
  options: OneShotOptions,
  { isForGateway, order, after }: OneShot,
  io: Io,
): Promise<number> {
  const voice = new Voice(io.stderr, options.json === true);
  const http = new RelayHttp(options.url, io);
  const identity = await readIdentity(options.key, io.env, voice);
  const route = await openRoute({ identity, http, isForGateway, takeOver: options["take-over"] === true }, io);
  try {
    const what = await order(http);
    const receipt = await route.place(what);
    const words = receiptWords(what, receipt);
    await writeLine(io.stdout, options.json ? jsonLine({ ok: true, ...receipt, via: route.name }) : words);
    return (await after?.(receipt, http, voice)) ?? EXIT.ok;
  } finally {
    await route.close();
  }
}
