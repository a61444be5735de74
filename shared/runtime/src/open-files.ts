import { readdirSync, readFileSync } from "node:fs";
import type { ConnectionSettings } from "./http/connection-bounds.ts";
import type { Logger } from "./logging.ts";
import { SettingsError } from "./settings.ts";

/** Descriptors for all that is no client's connection: Redis, the keys file, the metrics. */
const RESERVED = 64;
/** Connections of the admin listener, which has one socket besides. */
export const ADMIN_CONNECTIONS = 512;
/** Connections without which there is nothing to serve. */
const FEWEST = 32;
/** Of too few descriptors, the share of plain HTTP where there are websockets too. */
const HTTP_SHARE = 0.25;

type Bounded = Pick<ConnectionSettings, "httpConnections" | "maxConnections">;
type Counted = Bounded & { readonly adminPort?: number | undefined };

/**
 * The settings with no more connections than there are file descriptors for. A process without a descriptor left takes each
 * connection only to close it, and Node tells nobody (EMFILE): it must never come to that.
 * @throws {SettingsError} when there are too few to serve at all.
 */
export function withinOpenFiles<Settings extends Counted>(
  settings: Settings,
  logger: Logger,
  level: "warn" | "info" = "warn",
): Settings {
  const files = openFiles();
  if (files === null) return settings;
  const reserved = files.open + RESERVED + (settings.adminPort === undefined ? 0 : ADMIN_CONNECTIONS + 1);
  const fewest = reserved + FEWEST;
  if (files.limit < fewest) throw new SettingsError([`the limit of open files (ulimit -n) must be at least ${fewest}`]);
  const bounds = fitted(settings, files.limit - reserved);
  if (bounds === null) return settings;
  logger[level](
    { openFiles: files.limit, ...bounds },
    "the limit of open files allows fewer connections than the settings",
  );
  return { ...settings, ...bounds };
}

/** What becomes of the bounds when only so many connections can be had; null when that is enough. */
export function fitted({ httpConnections, maxConnections }: Bounded, available: number): Bounded | null {
  const plain = httpConnections || Number.POSITIVE_INFINITY;
  if (plain + (maxConnections ?? 0) <= available) return null;
  if (maxConnections === undefined) return { httpConnections: available };
  const forHttp = Math.min(plain, Math.max(Math.floor(available * HTTP_SHARE), available - maxConnections));
  return { httpConnections: forHttp, maxConnections: Math.min(maxConnections, available - forHttp) };
}

/** How many descriptors the process may have, and has; null where the system does not say. Node has raised the limit already. */
function openFiles(): { readonly limit: number; readonly open: number } | null {
  try {
    const [, limit] = /^Max open files +([0-9]+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return limit === undefined ? null : { limit: Number(limit), open: readdirSync("/proc/self/fd").length };
  } catch {
    return null;
  }
}
