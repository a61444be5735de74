import { types } from "node:util";
import { type DestinationStream, type Logger as PinoLogger, pino } from "pino";

/** The log of a service: JSON lines on stdout. */
export type Logger = PinoLogger;

/** Values of `LOG_LEVEL`. */
export const LOG_LEVELS = ["silent", "fatal", "error", "warn", "info", "debug", "trace"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What is logged of an error. Its other properties may hold private data: a raw body, the arguments of a command. */
interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
}

const REDACTED = "[Redacted]";
const NOT_SHOWN = "not shown";
const MAX_DEPTH = 4;

/** Names, in lower case and without `-` and `_`, whose values are never logged, at any depth. */
const PRIVATE_NAMES = new Set([
  ...["req", "request", "res", "response", "ctx", "socket", "headers", "body", "rawbody", "query", "url"],
  ...["authorization", "proxyauthorization", "cookie", "setcookie", "useragent"],
  ...["xforwardedfor", "forwarded", "xrealip", "remoteaddress", "address", "ip"],
  ...["xapikey", "apikey", "key", "secret", "privatekey", "password", "sig", "signature"],
  ...["envelope", "canonical", "payload", "feedback", "purpose", "intro", "scope"],
]);

/**
 * The log of one service. Privacy: values under private names are replaced at every depth, and only type, message, code
 * and stack of an error are logged. By hand, since pino's `redact` takes paths of a known depth, not names at any depth.
 * An error's message never becomes the text of its line.
 */
export function createLogger(
  options: { readonly service: string; readonly level: LogLevel },
  destination: DestinationStream = pino.destination(1),
): Logger {
  const logger = pino(
    {
      level: options.level,
      base: { service: options.service },
      serializers: { err: (scrubbed) => scrubbed },
      formatters: { level: (label) => ({ level: label }), log: (line) => scrubMembers(line, MAX_DEPTH) },
      hooks: {
        logMethod(args, method) {
          const [object, text] = args as unknown[];
          method.apply(this, typeof object === "object" && text === undefined ? [object, "error"] : args);
        },
      },
    },
    destination,
  );
  return withScrubbedBindings(logger);
}

/** Pino does not pass the bindings of child loggers through `formatters.log`. */
function withScrubbedBindings(logger: Logger): Logger {
  const child = logger.child;
  logger.child = function (this: Logger, bindings: pino.Bindings, ...rest: []) {
    return child.call(this, scrubMembers(bindings, MAX_DEPTH), ...rest);
  } as Logger["child"];
  return logger;
}

function scrub(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (types.isNativeError(value)) return serializeError(value);
  if (value instanceof Date) return value.toISOString();
  if (depth === 0 || ArrayBuffer.isView(value)) return REDACTED;
  if (Array.isArray(value)) return value.map((item) => scrub(item, depth - 1));
  return scrubMembers(value, depth - 1);
}

function scrubMembers(object: object, depth: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, isPrivate(name) ? REDACTED : scrub(value, depth)]),
  );
}

function isPrivate(name: string): boolean {
  return PRIVATE_NAMES.has(name.replace(/[-_]/g, "").toLowerCase());
}

function serializeError(error: Error & { code?: unknown }): LoggedError {
  const { name, code, stack } = error;
  return {
    type: name,
    message: quotesItsInput(error) ? NOT_SHOWN : error.message,
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    ...(stack === undefined ? {} : { stack: quotesItsInput(error) ? framesOf(stack) : stack }),
  };
}

/** An error whose message may quote what came in. */
export function withoutMessage(error: unknown): LoggedError {
  if (!types.isNativeError(error)) return { type: typeof error, message: NOT_SHOWN };
  const { name, message, stack = "" } = error;
  const from = stack.indexOf(message);
  return {
    type: name,
    message: NOT_SHOWN,
    ...(from < 0 ? {} : { stack: framesOf(stack.slice(from + message.length)) }),
  };
}

/** The message of a JSON syntax error quotes the text that failed to parse: a request body, or the keys file. */
function quotesItsInput(error: Error): boolean {
  return error.name === "SyntaxError";
}

function framesOf(stack: string): string {
  return stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
}
