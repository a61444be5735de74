import { promisify } from "node:util";
import { brotliCompress, gzip, constants as zlib } from "node:zlib";
import type Koa from "koa";

/** The content codings of answers, the preferred one first. */
const ENCODINGS = ["br", "gzip"] as const;
export type Encoding = (typeof ENCODINGS)[number] | "identity";

/** Below this a packet carries the answer either way. */
const PAYS_FROM_BYTES = 1024;
/** Levels for an answer that is made for one request: most of the gain for a fraction of a millisecond. */
const CHEAP_BROTLI = { params: { [zlib.BROTLI_PARAM_QUALITY]: 4 } };
const CHEAP_GZIP = { level: 3 };
const inBrotli = promisify(brotliCompress);
const inGzip = promisify(gzip);

/**
 * Compresses the text of answers to reads. Bytes are sent as they are: packages, and documents that are kept
 * compressed. Answers to POST are never compressed. They answer API keys and repeat what the caller wrote, and their
 * compressed length would tell which parts are alike (BREACH). Reads are public and take no secret.
 */
export const compressReads: Koa.Middleware = (ctx, next) =>
  ctx.method === "GET" || ctx.method === "HEAD" ? compressRead(ctx, next) : next();

async function compressRead(ctx: Koa.Context, next: Koa.Next): Promise<void> {
  await next();
  const { body } = ctx;
  if (body === null || body === undefined || Buffer.isBuffer(body)) return;
  ctx.vary("Accept-Encoding");
  const encoding = encodingFor(ctx.get("Accept-Encoding"));
  if (encoding === "identity") {
    // Node would make bytes of a text once more than needed: of 560 KB that takes as long as sending them.
    if (typeof body === "string") ctx.body = Buffer.from(body);
    return;
  }
  const text = typeof body === "string" ? body : JSON.stringify(body);
  if (Buffer.byteLength(text) < PAYS_FROM_BYTES) return;
  ctx.body = encoding === "br" ? await inBrotli(text, CHEAP_BROTLI) : await inGzip(text, CHEAP_GZIP);
  ctx.set("Content-Encoding", encoding);
}

/**
 * The coding that a client prefers; identity if it accepts neither of ours. Koa would take the order of the client's
 * list for equal weights, and browsers list gzip first.
 * @param accepted the field value of Accept-Encoding; empty without one. Source: RFC 9110, section 12.5.3.
 */
export function encodingFor(accepted: string): Encoding {
  const weights = new Map(accepted.toLowerCase().split(",").map(weighted));
  const weightOf = (coding: string) => weights.get(coding) ?? weights.get("*") ?? 0;
  const [best] = ENCODINGS.toSorted((one, other) => weightOf(other) - weightOf(one));
  const least = weights.get("identity") ?? 0;
  return best !== undefined && weightOf(best) > 0 && weightOf(best) >= least ? best : "identity";
}

function weighted(item: string): [coding: string, weight: number] {
  const [coding = "", ...parameters] = item.split(";").map((part) => part.trim());
  const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
  return [coding, /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight) ? Number(weight) : 0];
}
