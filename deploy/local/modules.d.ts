/** The JavaScript here, which runs on Node 20 before anything is installed, as TypeScript sees it. */

declare module "*/browser-program.mjs" {
  export function browserProgram(path?: string): string;
}

declare module "*/lock-file.mjs" {
  export function withLock<T>(path: string, patienceMs: number, work: () => T | Promise<T>): Promise<T>;
}

declare module "*/packages.mjs" {
  type Packages = { packages: Record<string, { version?: string; optional?: boolean; link?: boolean }> };
  export function isInstalled(lock: Packages, installed: Packages | undefined): boolean;
}

declare module "*/redis-program.mjs" {
  export function redisProgram(path?: string): string;
  export function majorVersion(banner: string): number;
}
