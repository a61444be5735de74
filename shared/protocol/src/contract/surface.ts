import type { z } from "zod";
import type { ErrorCode } from "../wire/errors.ts";

export type ServiceName = "gateway" | "ws-connector" | "ops-reporting";

/** One HTTP endpoint. */
export interface Surface {
  readonly method: "GET" | "POST";
  /** Main path, with OpenAPI parameters: `/sessions/{session_id}`. */
  readonly path: string;
  /** Further paths with the same answer, counted as the main path. */
  readonly aliases: readonly string[];
  /** The service that answers; `each` for the probes that every service answers. */
  readonly service: ServiceName | "each";
  readonly group: "gateway" | "presence" | "feedback" | "diagnostics" | "guides" | "self-test" | "discovery" | "probes";
  readonly summary: string;
  /** `x-api-key` is required. */
  readonly apiKey: boolean;
  readonly query: z.ZodType | null;
  readonly request: z.ZodType | null;
  readonly response: z.ZodType;
  /** Content type of the answer: `application/json`, except for texts, pages and their files. */
  readonly media: string;
  /** Status of a successful answer. */
  readonly status: 200 | 202;
  readonly errors: readonly ErrorCode[];
  /** Counted in `surface_views` and `top_surfaces`: every GET except probes and files of pages. */
  readonly traffic: boolean;
  /** Sent with an ETag, and answered 304 to whoever has it already. Source: docs/protocol.md#discovery. */
  readonly revalidated: boolean;
}

type Optional = "aliases" | "media" | "apiKey" | "query" | "request" | "status" | "errors" | "traffic" | "revalidated";
type Declaration = Omit<Surface, Optional | "method"> & Partial<Pick<Surface, Optional>>;

/** Keeps what a declaration says in its type, so that the compiler checks handlers against the catalogue. */
type Declared<D extends Declaration> = Surface &
  Pick<D, "service" | "response"> & { readonly query: D extends { query: infer Query } ? Query : null };

/** A surface that is read. */
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
/** A surface that is written to. */
export const post = <const D extends Declaration>(declaration: D): Declared<D> => ({
  ...get(declaration),
  method: "POST",
  traffic: false,
});

/** Errors of every surface that takes a body. */
export const BODY_ERRORS = ["malformed_json", "invalid_request", "body_too_large", "unsupported_media_type"] as const;
