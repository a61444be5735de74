import type { z } from "zod";
import type { ErrorCode } from "../wire/errors.ts";

export type ServiceName = "gateway" | "ws-connector" | "ops-reporting";

/** One HTTP endpoint. */
export interface Surface {
  readonly method: "GET" | "POST";
  /** Main path, with OpenAPI parameters: `/sessions/{session_id}`. */
  readonly path: string;
  /** Other paths with the same answer. They count as the main path. */
  readonly aliases: readonly string[];
  /** The service that answers. `each` marks probes that every service answers. */
  readonly service: ServiceName | "each";
  readonly group: "gateway" | "presence" | "feedback" | "diagnostics" | "guides" | "self-test" | "discovery" | "probes";
  readonly summary: string;
  /** True if `x-api-key` is required. */
  readonly apiKey: boolean;
  readonly query: z.ZodType | null;
  readonly request: z.ZodType | null;
  readonly response: z.ZodType;
  /** Content type of the answer. `application/json`, except for texts, pages and their files. */
  readonly media: string;
  /** Status of a successful answer. */
  readonly status: 200 | 202;
  readonly errors: readonly ErrorCode[];
  /** True if `surface_views` and `top_surfaces` count it: every GET except probes and files of pages. */
  readonly traffic: boolean;
  /** True if the answer has an ETag, and a client that has it already gets 304. Source: docs/protocol.md#discovery. */
  readonly revalidated: boolean;
}

type Optional = "aliases" | "media" | "apiKey" | "query" | "request" | "status" | "errors" | "traffic" | "revalidated";
type Declaration = Omit<Surface, Optional | "method"> & Partial<Pick<Surface, Optional>>;

/** Keeps a declaration's values in its type, so that the compiler checks handlers against the catalogue. */
type Declared<D extends Declaration> = Surface &
  Pick<D, "service" | "response"> & { readonly query: D extends { query: infer Query } ? Query : null };

/** Declares a surface for reading. */
export const get = <const D extends Declaration>(declaration: D) =>
  ({
    method: "GET",
    aliases: [],
    media: "application/json",
    apiKey: false,
    query: null,
    request: null,
    status: 200,
    errors: [],
    traffic: true,
    revalidated: false,
    ...declaration,
  }) as Surface as Declared<D>;
/** Declares a surface for writing. */
export const post = <const D extends Declaration>(declaration: D): Declared<D> => ({
  ...get(declaration),
  method: "POST",
  traffic: false,
});

/** Errors of every surface that takes a body. */
export const BODY_ERRORS = ["malformed_json", "invalid_request", "body_too_large", "unsupported_media_type"] as const;
