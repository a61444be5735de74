import type { IContainer, IEnvVar } from "kubernetes-models/v1";
import { SettingsError } from "relay-runtime/settings.ts";
import { type Manifest, named } from "./manifests.ts";

/** Environments of the containers, made as the kubelet makes them. */

/** Stands for a value that the operator keeps. */
export const FROM_OUTSIDE = "from-outside";

/** Variables of a container: `envFrom`, then `env`, with `$(NAME)` of those before put in. */
export function environmentOf(objects: readonly Manifest[], container: IContainer): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const { configMapRef } of container.envFrom ?? []) {
    Object.assign(environment, named(objects, "ConfigMap", configMapRef?.name ?? "").data);
  }
  for (const variable of container.env ?? []) {
    if (isLeftOut(objects, variable)) continue;
    environment[variable.name] = textOf(objects, variable).replace(/\$\(([A-Z_]+)\)/g, (text, name) =>
      name in environment ? (environment[name] as string) : text,
    );
  }
  return environment;
}

/** Names that are read through `$(NAME)` by another variable of the container. */
export function helpersOf(container: IContainer): string[] {
  return (container.env ?? []).flatMap(({ value = "" }) =>
    Array.from(value.matchAll(/\$\(([A-Z_]+)\)/g), ([, name = ""]) => name),
  );
}

/** True for a setting that need not be there, and is not. */
function isLeftOut(objects: readonly Manifest[], { valueFrom }: IEnvVar): boolean {
  const setting = valueFrom?.configMapKeyRef;
  return (
    setting?.optional === true && named(objects, "ConfigMap", setting.name ?? "").data?.[setting.key] === undefined
  );
}

function textOf(objects: readonly Manifest[], { name, value, valueFrom }: IEnvVar): string {
  if (value !== undefined) return value;
  const { configMapKeyRef: setting, secretKeyRef: secret } = valueFrom ?? {};
  if (setting) return found(named(objects, "ConfigMap", setting.name ?? "").data?.[setting.key], name);
  const kept = objects.find((object) => object.kind === "Secret" && object.metadata?.name === secret?.name);
  if (kept?.kind !== "Secret") return FROM_OUTSIDE;
  return Buffer.from(found(kept.data?.[secret?.key ?? ""], name), "base64").toString();
}

function found(value: string | undefined, name: string): string {
  if (value === undefined) throw new Error(`${name} comes from a key that is not there.`);
  return value;
}

/** Names of the variables that a reader of settings asks for. */
export function settingsOf(read: (env: Record<string, string | undefined>) => unknown): string[] {
  const asked = new Set<string>();
  const listening = new Proxy<Record<string, string>>({}, { get: (_, name) => void asked.add(String(name)) });
  try {
    read(listening);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
  }
  return [...asked];
}
