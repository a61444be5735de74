import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** Who may speak to the server over HTTP. */

const LOOPBACK: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

/**
 * False for a page that got here by DNS rebinding, whose name stands in `Host`, and for a page of a foreign origin.
 * @param names beside loopback's.
 */
export function isMeant({ host, origin }: IncomingHttpHeaders, names: readonly string[]): boolean {
  const isOurs = (url: string) => URL.canParse(url) && [...LOOPBACK, ...names].includes(new URL(url).hostname);
  return isOurs(`http://${host}`) && (origin === undefined || isOurs(origin));
}

/** Compares digests, in a time that tells nothing about the token. */
export function hasToken({ authorization = "" }: IncomingHttpHeaders, token: string): boolean {
  const [, given = ""] = /^Bearer +([^ ]+)$/i.exec(authorization) ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
