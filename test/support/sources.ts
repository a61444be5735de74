import { glob, readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";

const REPOSITORY = new URL("../../", import.meta.url);
const NOT_OURS = new Set(["node_modules", "dist", ".local", ".git"]);

/** A file of the repository, and the comments in it. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  /** Each comment on one line, without its markers; lines of comment that follow each other are one comment. */
  readonly comments: readonly string[];
}

/** Every file that can have comments. */
export async function sourceFiles(): Promise<SourceFile[]> {
  const files = await filesOf("**/{*.{ts,mjs,js,lua,py,yaml,yml,conf,sh,css},Dockerfile}");
  return files.map(({ path, text }) => ({ path, text, comments: commentsOf(path, text) }));
}

/** Every document and package file. */
export function documents(): Promise<Omit<SourceFile, "comments">[]> {
  return filesOf("**/*.{md,html,json}");
}

/** The files of the repository, without packages, build results and what is not in git. */
async function filesOf(pattern: string): Promise<Omit<SourceFile, "comments">[]> {
  const exclude = (path: string) => NOT_OURS.has(path.split("/").at(-1) ?? "");
  const paths: string[] = [];
  for await (const path of glob(pattern, { cwd: REPOSITORY, exclude })) paths.push(path);
  return await Promise.all(
    paths.toSorted().map(async (path) => ({ path, text: await readFile(new URL(path, REPOSITORY), "utf8") })),
  );
}

/** The marker with which a comment's line begins, by the file's name. */
function markerOf(path: string): RegExp {
  if (/\.(?:ts|mjs|js|css)$/.test(path)) return /^(?:\/\*\*?|\/\/|\*\/?)\s?/;
  return path.endsWith(".lua") ? /^--\s?/ : /^#\s?/;
}

function commentsOf(path: string, text: string): string[] {
  const marker = markerOf(path);
  const comments: string[][] = [];
  let isOpen = false;
  for (const line of text.split("\n").map((each) => each.trim())) {
    const isComment = marker.test(line);
    if (isComment && (!isOpen || line.startsWith("/*"))) comments.push([]);
    if (isComment) comments.at(-1)?.push(line.replace(marker, "").replace(/\s*\*\/$/, ""));
    isOpen = isComment;
  }
  return comments.map((lines) => lines.join(" "));
}

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

/** An object as a file of deploy/kubernetes has it, before any overlay. */
export interface KubernetesObject<Spec> {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Spec;
}

/** The objects of a file, from deploy/kubernetes on. What is of another form than `Spec` fails in the test that reads it. */
export async function kubernetesFile<Spec>(path: string): Promise<KubernetesObject<Spec>[]> {
  const text = await readFile(new URL(`../../deploy/kubernetes/${path}`, import.meta.url), "utf8");
  return parseAllDocuments(text, { version: "1.1" }).map((document) => document.toJS());
}

/** Seconds of a duration of Gateway API. Here they are whole seconds. */
export function secondsOf(duration: string | undefined): number {
  const [, seconds] = /^(\d+)s$/.exec(duration ?? "") ?? [];
  if (seconds === undefined) throw new Error(`A duration here is whole seconds, not ${duration}.`);
  return Number(seconds);
}
