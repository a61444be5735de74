/**
 * Reads a request target as path and query: `/health?x=1`. Null for what no surface can answer: `*`, an authority, a
 * fragment, a backslash, raw white space or non-ASCII. Dot segments, double slashes and escapes are left as they are: if one
 * of edge, dispatcher and router resolved them, the others would check another path than the one that is answered.
 * The absolute form is accepted and its authority ignored. Source: RFC 9112, section 3.2.
 */
export function originForm(target: string): string | null {
  const path = target.replace(/^https?:\/\/[^/?#\\]+/i, "");
  const rooted = path === "" || path.startsWith("?") ? `/${path}` : path;
  return /^\/[\x21\x22\x24-\x5b\x5d-\x7e]*$/.test(rooted) ? rooted : null;
}
