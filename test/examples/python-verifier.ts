import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { pythonProgram } from "../../deploy/local/python-program.mjs";

const FOLDER = fileURLToPath(new URL("../../examples/python", import.meta.url));

/** Each line is a command line, or code that has the program as module `verify`; one process for all of them. */
const DRIVER = `
import contextlib, io, json, sys, verify
for line in sys.stdin:
    given, printed, code = json.loads(line), io.TextIOWrapper(io.BytesIO(), "utf-8"), 0
    with contextlib.redirect_stdout(printed):
        try:
            if isinstance(given, str):
                exec(given, {"verify": verify})
            else:
                sys.argv = ["verify.py", *given]
                verify.main()
        except SystemExit as end:
            code = end.code
        except verify.Refused as refused:
            code = f"Refused: {refused}"
    printed.flush()
    print(json.dumps([code, printed.buffer.getvalue().decode()]), flush=True)
`;

/** `examples/python/verify.py`. */
export class PythonVerifier {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  readonly #ended: Promise<never>;

  /** @throws {Error} what to install, where there is no Python that can run it. */
  constructor() {
    const env = { ...process.env, PYTHONUTF8: "1" };
    this.#child = spawn(pythonProgram(), ["-B", "-c", DRIVER], { cwd: FOLDER, env });
    this.#child.stderr.pipe(process.stderr);
    this.#lines = createInterface(this.#child.stdout);
    this.#ended = once(this.#child, "close").then(() => Promise.reject(new Error("Python ended.")));
    this.#ended.catch(() => undefined);
  }

  /** Runs a command line, one at a time. */
  async run(args: readonly string[]): Promise<{ readonly code: number; readonly stdout: string }> {
    const [code, stdout] = await this.#ask(args);
    return { code: Number(code), stdout };
  }

  /** What a line of Python prints. @throws {Error} when it raises Refused. */
  async evaluate(code: string): Promise<string> {
    const [problem, stdout] = await this.#ask(code);
    if (problem !== 0) throw new Error(String(problem));
    return stdout;
  }

  async stop(): Promise<void> {
    const closed = once(this.#child, "close");
    this.#child.stdin.end();
    await closed;
  }

  async #ask(given: unknown): Promise<[code: number | string, stdout: string]> {
    const answer = once(this.#lines, "line");
    this.#child.stdin.write(`${JSON.stringify(given)}\n`);
    const [line] = await Promise.race([answer, this.#ended]);
    return JSON.parse(line);
  }
}
