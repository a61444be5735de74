import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** Who may speak to the server over HTTP. */

const LOOPBACK: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

/** A name or an address, and a port: nothing that a URL could have beside. */
const AUTHORITY = /^([\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;
const PAGE = /^https?:\/\/(.+)$/;

/**
 * False for a page that got here by DNS rebinding, whose name stands in `Host`, and for a page of a foreign origin.
 * @param names beside loopback's.
 */
export function isMeant({ host = "", origin }: IncomingHttpHeaders, names: readonly string[]): boolean {
  const served = [...LOOPBACK, ...names].map((name) => name.toLowerCase());
  const isOurs = (authority: string) => served.includes(AUTHORITY.exec(authority)?.[1]?.toLowerCase() ?? "");
  return isOurs(host) && (origin === undefined || isOurs(PAGE.exec(origin)?.[1] ?? ""));
}

/** Compares digests, in a time that tells nothing about the token. */
export function hasToken({ authorization = "" }: IncomingHttpHeaders, token: string): boolean {
  const [, given = ""] = /^Bearer +([^ ]+)$/i.exec(authorization) ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
