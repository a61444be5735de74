import { type ExecFileOptions, execFile } from "node:child_process";

export interface Ended {
  /** Exit code, the signal that ended it, or why it could not be run. */
  readonly code: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. @param stdin is all that it reads. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: ExecFileOptions = {},
  stdin = "",
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(program, args, { ...options, encoding: "utf8" }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), stdout, stderr });
    });
    child.stdin?.on("error", () => undefined).end(stdin);
  });
}
