import { MIMEType } from "node:util";
import type Koa from "koa";
import { koaBody } from "koa-body";
import type { z } from "zod";
import { RelayError } from "../contract/errors.ts";
import { HTTP_LIMITS } from "../contract/limits.ts";
import { decode } from "../intake/decode.ts";
import { isRefusal, type Refusal } from "../intake/refusal.ts";
import { parseShape } from "./shape.ts";

/** A JSON body: its text as it came, and what it says. */
export interface JsonBody {
  readonly text: string;
  readonly value: unknown;
}

const JSON_TYPE = "application/json";

/**
 * koa-body reads the body as one character a byte and parses nothing: its own JSON reading replaces invalid UTF-8, takes
 * an empty body for `{}` and hangs the raw body on its errors.
 */
const readBytes = koaBody({
  text: true,
  textTypes: [JSON_TYPE],
  textLimit: HTTP_LIMITS.maxBodyBytes,
  encoding: "binary",
  json: false,
  urlencoded: false,
  multipart: false,
  parsedMethods: ["POST"] as never,
});

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads a JSON body against a schema.
 * @throws RelayError `unsupported_media_type`, `body_too_large`, `malformed_json` or `invalid_request`.
 */
export async function readBody<Schema extends z.ZodType>(ctx: Koa.Context, schema: Schema): Promise<z.output<Schema>> {
  const { value } = await readJson(ctx);
  return parseShape(schema, value);
}

/** Reads a JSON body as it is. Throws as `readBody` does. Source: protocol, section 9. */
export async function readJson(ctx: Koa.Context): Promise<JsonBody> {
  const text = await readBodyText(ctx);
  const decoded = decode(text);
  if (isRefusal(decoded)) throw refusedBody(decoded);
  return { text, value: decoded.value };
}

/**
 * Reads the text of a JSON body, not yet parsed.
 * @throws RelayError `unsupported_media_type`, `body_too_large`, or `malformed_json` for what is not UTF-8.
 */
export async function readBodyText(ctx: Koa.Context): Promise<string> {
  checkMediaType(ctx);
  return await readText(ctx);
}

/** Bodies are no envelopes: what JSON is not is malformed, what the relay does not take is an invalid request. */
function refusedBody({ code, detail }: Refusal): RelayError {
  if (code === "malformed_json") return new RelayError(code);
  return new RelayError("invalid_request", detail === undefined ? {} : { detail });
}

/** Content encodings are refused before a byte is read: no bomb is ever unpacked. */
function checkMediaType(ctx: Koa.Context): void {
  const encoding = ctx.get("Content-Encoding");
  if (encoding === "" && ctx.get("Content-Type") === JSON_TYPE) return;
  const type = mediaTypeOf(ctx.get("Content-Type"));
  const charset = type?.params.get("charset")?.toLowerCase() ?? "utf-8";
  const isGood = type?.essence === JSON_TYPE && charset === "utf-8" && (encoding === "" || encoding === "identity");
  if (!isGood) throw new RelayError("unsupported_media_type");
}

function mediaTypeOf(header: string): MIMEType | null {
  try {
    return new MIMEType(header);
  } catch {
    return null;
  }
}

async function readText(ctx: Koa.Context): Promise<string> {
  try {
    await readBytes(ctx, async () => {});
  } catch (error) {
    // What is left of the body flows away unread; a paused socket would hang the client that still sends.
    ctx.req.resume();
    throw new RelayError((error as { status?: unknown }).status === 413 ? "body_too_large" : "malformed_json");
  }
  const bytes = Buffer.from((ctx.request as { body?: string }).body ?? "", "latin1");
  try {
    return utf8.decode(bytes);
  } catch {
    throw new RelayError("malformed_json");
  }
}
