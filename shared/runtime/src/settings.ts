import type { z } from "zod";
import { isClusterUrl } from "./addresses.ts";
import { type ReadSource, SETTINGS, type Setting, type SettingName } from "./settings-catalogue.ts";

/** Exit code of a service with invalid settings (sysexits.h, EX_CONFIG). */
export const CONFIGURATION_EXIT_CODE = 78;

/** Environment variables as the process holds them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The values of some settings under their short names: `RELAY_BASE_URL` is `baseUrl`, `PORT` is `port`. */
export type Settings<Name extends SettingName> = { readonly [N in Name as ShortName<N>]: ValueOf<N> };

type ShortName<Name extends string> = Name extends `RELAY_${infer Rest}`
  ? Camel<Lowercase<Rest>>
  : Camel<Lowercase<Name>>;
type Camel<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text;
type ValueOf<Name extends SettingName> =
  | z.output<(typeof SETTINGS)[Name]["schema"]>
  | ((typeof SETTINGS)[Name] extends { default: string } | { required: true } ? never : undefined);

/** All invalid settings in one message: names and rules, never values, since `REDIS_URL` can contain a password. */
export class SettingsError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(["Invalid settings:", ...problems].join("\n  "));
    this.name = "SettingsError";
    this.problems = problems;
  }
}

/**
 * Makes the reader of one service's settings.
 * @throws SettingsError (the reader does) that lists every invalid setting.
 */
export function settingsReader<Name extends SettingName>(
  ...names: readonly Name[]
): (env: Environment) => Settings<Name> {
  const readsRedis = (names as readonly SettingName[]).includes("REDIS_URL");
  return (env) => {
    const problems = new Map<SettingName, string>();
    const read = (name: SettingName): unknown => {
      const setting: Setting = SETTINGS[name];
      const text = env[name] || (setting.derive ? setting.derive(read as ReadSource) : setting.default);
      if (text === undefined) return undefined;
      if (text === null) {
        if (setting.required) problems.set(name, "is required");
        return undefined;
      }
      const result = setting.schema.safeParse(text);
      const same = setting.differsFrom?.find((other) => read(other) === result.data);
      if (!result.success) problems.set(name, result.error.issues[0]?.message ?? "is invalid");
      else if (same !== undefined) problems.set(name, `must differ from ${same}`);
      else if (setting.needs !== undefined && !env[setting.needs]) {
        problems.set(name, `needs ${setting.needs}`);
      } else if (
        setting.leastOnCluster !== undefined &&
        isOnCluster() &&
        Number(result.data) < setting.leastOnCluster
      ) {
        problems.set(name, `must be at least ${setting.leastOnCluster} on the Redis Cluster of REDIS_URL, such as 12`);
      }
      return result.data;
    };
    const isOnCluster = () => readsRedis && isClusterUrl(String(read("REDIS_URL")));
    const values = Object.fromEntries(names.map((name) => [shortName(name), read(name)]));
    if (problems.size > 0) throw new SettingsError([...problems].map(([name, rule]) => `${name} ${rule}`));
    return values as Settings<Name>;
  };
}

/** Reads for several services that share a process. @throws SettingsError that lists every setting invalid for any of them. */
export function checkSettings(readers: readonly ((env: Environment) => unknown)[], env: Environment): void {
  const problems = new Set(readers.flatMap((read) => problemsOf(read, env)));
  if (problems.size > 0) throw new SettingsError([...problems]);
}

function problemsOf(read: (env: Environment) => unknown, env: Environment): readonly string[] {
  try {
    read(env);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

function shortName(name: SettingName): string {
  return name
    .replace(/^RELAY_/, "")
    .toLowerCase()
    .replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
