/** What is read of package-lock.json: packages by where they are installed. */
export interface Lock {
  readonly packages: Readonly<Record<string, Entry>>;
}

interface Entry {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  /** Where a workspace is that the entry only links to. */
  readonly resolved?: string;
  readonly link?: boolean;
  /** Nothing but development needs it. */
  readonly dev?: boolean;
  /** Digest of its content. */
  readonly integrity?: string;
  /** Part of another package, whose digest covers it. */
  readonly inBundle?: boolean;
  /** It may be left out, where `os`, `cpu` or `libc` do not fit for example. */
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

/** Where the packages are installed that a workspace needs to run, with all that those need; workspaces left out. */
export function closureOf({ packages }: Lock, workspace: string): string[] {
  const found = new Set<string>([workspace]);
  for (const at of found) {
    const { dependencies, optionalDependencies } = packages[at] as Entry;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const place = placeOf(packages, at, name);
      const { link, resolved } = packages[place] as Entry;
      found.add(link === true && resolved !== undefined ? resolved : place);
    }
  }
  return [...found].filter((at) => at.includes("node_modules/"));
}

/** The nearest `node_modules` upwards that has it. */
function placeOf(packages: Lock["packages"], from: string, name: string): string {
  const folders = from.split("/");
  for (;;) {
    const place = [...folders, "node_modules", name].join("/");
    if (place in packages) return place;
    if (folders.pop() === undefined) throw new Error(`${name}, which ${from} needs, is not in the lock.`);
  }
}
