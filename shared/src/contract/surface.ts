import type { z } from "zod";
import type { ErrorCode } from "./errors.ts";

export type ServiceName = "gateway" | "ws-connector" | "ops-reporting";

/** One HTTP endpoint. */
export interface Surface {
  readonly method: "GET" | "POST";
  /** Main path, with OpenAPI parameters: `/sessions/{session_id}`. */
  readonly path: string;
  /** Paths that answer as the main path does, counted under the main path's name. */
  readonly aliases: readonly string[];
  /** The service that answers; `each` for the probes that every service has. */
  readonly service: ServiceName | "each";
  readonly group: "gateway" | "presence" | "feedback" | "diagnostics" | "guides" | "self-test" | "discovery" | "probes";
  readonly summary: string;
  /** `x-api-key` is asked for. */
  readonly apiKey: boolean;
  readonly query: z.ZodType | null;
  readonly request: z.ZodType | null;
  readonly response: z.ZodType;
  /** Content type of the answer; `application/json` unless the surface is a text or a page. */
  readonly media: string;
  /** Status of the answer when all is well. */
  readonly status: 200 | 202;
  readonly errors: readonly ErrorCode[];
  /** Counted in `surface_views` and `top_surfaces`: every GET but the health probes. */
  readonly traffic: boolean;
}

type Optional = "aliases" | "media" | "apiKey" | "query" | "request" | "status" | "errors" | "traffic";
type Declaration = Omit<Surface, Optional | "method"> & Partial<Pick<Surface, Optional>>;

/** What a declaration says is kept in its type, so that routers can be checked against the catalogue. */
type Declared<D extends Declaration> = Surface &
  Pick<D, "service" | "response"> & { readonly query: D extends { query: infer Query } ? Query : null };

/** A surface that is read; the type keeps what the declaration says, so that routers can be checked against it. */
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
    ...declaration,
  }) as Surface as Declared<D>;
/** A surface that is written to. */
export const post = <const D extends Declaration>(declaration: D): Declared<D> => ({
  ...get(declaration),
  method: "POST",
  traffic: false,
});

/** Refusals of any endpoint that takes a body. */
export const BODY_ERRORS = ["malformed_json", "invalid_request", "body_too_large", "unsupported_media_type"] as const;
