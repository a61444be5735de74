import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { brotliCompress, gzip, constants as zlib } from "node:zlib";
import { type Encoding, encodingFor } from "relay-runtime/http/compression.ts";
import type { SurfaceContext } from "relay-runtime/http/router.ts";

/** A document as it is sent in one encoding. */
interface Representation {
  readonly bytes: Buffer;
  /** A strong entity tag: the digest of these very bytes, so that no two encodings share one. */
  readonly etag: string;
}

/** Well below the best level: that takes half a second for the longest document, which its first reader would wait for. */
const BROTLI = { params: { [zlib.BROTLI_PARAM_QUALITY]: 9 } };
const CODERS: Readonly<Record<Encoding, (content: Buffer) => Promise<Buffer>>> = {
  br: (content) => promisify(brotliCompress)(content, BROTLI),
  gzip: (content) => promisify(gzip)(content, { level: 9 }),
  identity: async (content) => content,
};

/**
 * Answers with a document that stays the same while the process runs. It is compressed when an encoding is first asked for,
 * and kept. Caches ask again each time and are told 304 while it is the same. Only for what shows neither the window nor
 * keys nor presence. Source: docs/protocol.md#discovery.
 */
export function keptDocument(document: string | object): (ctx: SurfaceContext) => Promise<Buffer> {
  const content = Buffer.from(typeof document === "string" ? document : JSON.stringify(document));
  const kept = new Map<Encoding, Promise<Representation>>();
  const keep = (encoding: Encoding) => {
    const made = CODERS[encoding](content).then((bytes) => ({ bytes, etag: tagOf(bytes) }));
    kept.set(encoding, made);
    return made;
  };
  return async (ctx) => {
    const encoding = encodingFor(ctx.get("Accept-Encoding"));
    const { bytes, etag } = await (kept.get(encoding) ?? keep(encoding));
    ctx.vary("Accept-Encoding");
    ctx.set({ "Cache-Control": "no-cache", ETag: etag });
    if (names(ctx.get("If-None-Match"), etag)) ctx.status = 304;
    else if (encoding !== "identity") ctx.set("Content-Encoding", encoding);
    return bytes;
  };
}

function tagOf(bytes: Buffer): string {
  return `"${createHash("sha256").update(bytes).digest("base64url")}"`;
}

/** Whether If-None-Match names the tag: `*`, or a list of tags that are compared weakly. Source: RFC 9110, section 13.1.2. */
function names(ifNoneMatch: string, etag: string): boolean {
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || ifNoneMatch.trim() === "*";
}
