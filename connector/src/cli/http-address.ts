import { isIPv4 } from "node:net";
import { usageError } from "./failure.ts";

interface HttpAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Where `--http` listens. Other machines reach it only where somebody says so.
 * @param names what they call this machine. @throws {Failure} `usage`.
 */
export function httpAddress(text: string, names: readonly string[]): HttpAddress {
  const [, host = "", digits] = /^\[?([^[\]]+)\]?:(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (!(port <= 65_535)) throw usageError("--http must be an address and a port, such as 127.0.0.1:7300.");
  if (isLoopback(host) || names.length > 0) return { host, port };
  throw usageError(
    "--http listens for this machine only.",
    "For others name it as they do, with --http-name, and put TLS in front of it: the token is readable on the way.",
  );
}

/** @param host without the brackets of an IPv6 address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}
