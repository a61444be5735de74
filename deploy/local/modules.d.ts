/** Types of the JavaScript modules here, which run on Node 20 before anything is installed. */

declare module "*/browser-program.mjs" {
  export function browserProgram(path?: string): string;
}

declare module "*/docker-engine.mjs" {
  export function dockerEngine(path?: string): void;
}

declare module "*/jest.mjs" {
  export const JEST: readonly string[];
}

declare module "*/kubectl-program.mjs" {
  export function kubectlProgram(path?: string): string;
}

declare module "*/lock-file.mjs" {
  export function withLock<T>(path: string, timeoutMs: number, work: (check: () => void) => T | Promise<T>): Promise<T>;
}

declare module "*/node-program.mjs" {
  export function chooseNode(machine: {
    platform: string;
    version: string;
    program: string;
    pinned: string | undefined;
  }): string;
  export function dropPinnedThatFails(root: string): void;
}

declare module "*/packages.mjs" {
  type Package = { version?: string; optional?: boolean; link?: boolean; dev?: boolean; devOptional?: boolean };
  type Packages = { packages: Record<string, Package> };
  export function isInstalled(
    lock: Packages,
    installed: Packages | undefined,
    needs: { development: boolean },
  ): boolean;
}

declare module "*/prometheus-program.mjs" {
  export function prometheusPrograms(path?: string): { prometheus: string; promtool: string };
}

declare module "*/python-program.mjs" {
  export function pythonProgram(path?: string): string;
}

declare module "*/redis-program.mjs" {
  export function redisProgram(path?: string): string;
  export function majorVersion(banner: string): number;
}

declare module "*/programs.mjs" {
  export function onPath(name: string, path?: string): string | undefined;
  export function allOnPath(name: string, path: string): string[];
}
