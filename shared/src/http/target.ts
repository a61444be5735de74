/**
 * Reads a request target as path and query, as a URL of the relay's own: `/health?x=1`. Null for what no surface can
 * answer: `*`, an authority, a fragment, a backslash, raw white space or non-ASCII. Dot segments, double slashes and
 * escapes stay as they are, so that edge, dispatcher and router see one and the same path.
 * Source: RFC 9112, section 3.2 (absolute-form is accepted, its authority ignored).
 */
export function originForm(target: string): string | null {
  const path = target.replace(/^https?:\/\/[^/?#\\]+/i, "");
  const rooted = path === "" || path.startsWith("?") ? `/${path}` : path;
  return /^\/[\x21\x22\x24-\x5b\x5d-\x7e]*$/.test(rooted) ? rooted : null;
}
