import { readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";

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
