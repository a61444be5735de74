const CHECK_MS = 500;

/**
 * Calls `ended` when the command was run by npx and its parent is gone. npx hands a signal to a shell in between, which ends of it
 * and passes nothing on: without this, `kill` of npx would leave the command running and its agent online.
 */
export function endWithNpx(env: NodeJS.ProcessEnv, ended: () => void): void {
  if (env.npm_command !== "exec") return;
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && ended(), CHECK_MS).unref();
}
