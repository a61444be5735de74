/** A URI with a form-style query (RFC 6570, `{?a,b}` and `{&a,b}`), of the values that there are: names without one are left out. */
export function expandQuery(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{([?&])([\w,]+)\}/g, (_, first: string, names: string) => {
    const pairs = names.split(",").flatMap((name) => {
      const value = values[name];
      return value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`];
    });
    return pairs.length === 0 ? "" : first + pairs.join("&");
  });
}
