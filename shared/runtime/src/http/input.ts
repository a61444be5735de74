import { MIMEType } from "node:util";
import type Koa from "koa";
import { koaBody } from "koa-body";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { IN_PLAIN_WORDS, isRefusal, namedFieldErrors, type Refusal } from "relay-protocol/intake/refusal.ts";
import { decode } from "relay-protocol/intake/steps.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import type { z } from "zod";

/** A JSON body: its text as it was sent, and its value. */
interface JsonBody {
  readonly text: string;
  readonly value: unknown;
}

const JSON_TYPE = "application/json";

/**
 * Reads the body up to the limit and leaves it as bytes: without an encoding, koa-body sets a Buffer. Its JSON parser is
 * not used: it replaces invalid UTF-8, takes an empty body for `{}`, and attaches the raw body to its errors.
 */
const readBytes = koaBody({
  text: true,
  textTypes: [JSON_TYPE],
  textLimit: HTTP_LIMITS.maxBodyBytes,
  encoding: "",
  json: false,
  urlencoded: false,
  multipart: false,
  parsedMethods: ["POST"] as never,
});

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads a JSON body and validates it against a schema.
 * @throws ServiceError `unsupported_media_type`, `body_too_large`, `malformed_json` or `invalid_request`.
 */
export async function readBody<Schema extends z.ZodType>(ctx: Koa.Context, schema: Schema): Promise<z.output<Schema>> {
  const { value } = await readJson(ctx);
  return validate(schema, value);
}

/** Reads a JSON body, not validated. Throws as `readBody` does. Source: docs/protocol.md#http. */
export async function readJson(ctx: Koa.Context): Promise<JsonBody> {
  const text = await readBodyText(ctx);
  const decoded = decode(text);
  if (isRefusal(decoded)) throw refusedBody(decoded);
  return { text, value: decoded.value };
}

/**
 * Reads the text of a JSON body, not parsed.
 * @throws ServiceError `unsupported_media_type`, `body_too_large`, or `malformed_json` for invalid UTF-8.
 */
export async function readBodyText(ctx: Koa.Context): Promise<string> {
  checkMediaType(ctx);
  const bytes = await bytesOf(ctx);
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ServiceError("malformed_json");
  }
}

/** A body is not an envelope: what decoding calls an invalid envelope is an invalid request here. */
function refusedBody({ code, detail }: Refusal): ServiceError {
  if (code === "malformed_json") return new ServiceError(code);
  return new ServiceError("invalid_request", detail === undefined ? {} : { detail });
}

/** A content encoding is refused before a byte is read, so that no decompression bomb is ever unpacked. */
function checkMediaType(ctx: Koa.Context): void {
  const encoding = ctx.get("Content-Encoding");
  if (encoding === "" && ctx.get("Content-Type") === JSON_TYPE) return;
  const type = mediaTypeOf(ctx.get("Content-Type"));
  const charset = type?.params.get("charset")?.toLowerCase() ?? "utf-8";
  const isJson = type?.essence === JSON_TYPE && charset === "utf-8";
  const isPlain = encoding === "" || encoding === "identity";
  if (!isJson || !isPlain) throw new ServiceError("unsupported_media_type");
}

function mediaTypeOf(header: string): MIMEType | null {
  try {
    return new MIMEType(header);
  } catch {
    return null;
  }
}

async function bytesOf(ctx: Koa.Context): Promise<Buffer | undefined> {
  try {
    await readBytes(ctx, async () => {});
  } catch (error) {
    // The rest of the body is discarded unread: with a paused socket, a client that still sends would hang.
    ctx.req.resume();
    throw new ServiceError((error as { status?: unknown }).status === 413 ? "body_too_large" : "malformed_json");
  }
  return (ctx.request as { body?: unknown }).body as Buffer | undefined;
}

/**
 * The value that a client sent, as the schema outputs it.
 * @throws ServiceError `invalid_request` with the invalid fields, unknown ones by name; it holds no value.
 */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value, IN_PLAIN_WORDS);
  if (!result.success) throw new ServiceError("invalid_request", { errors: namedFieldErrors(result.error) });
  return result.data;
}
