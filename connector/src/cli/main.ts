import { run } from "./run.ts";

/** The process of `relay`: signals, broken streams, and the exit code. */
const stopped = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopped.abort());

// npx hands a signal to a shell in between, which ends of it and passes nothing on. Without this, `kill` of npx would leave the
// command running, and its agent online.
if (process.env.npm_command === "exec") {
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && stopped.abort(), 500).unref();
}

// A reader that closes the pipe (relay listen | head -1) stops the command and is not an error.
process.stdout.on("error", () => stopped.abort());
process.stderr.on("error", () => {});

const { env, stdin, stdout, stderr } = process;
const code = await run(process.argv.slice(2), { env, stdin, stdout, stderr, signal: stopped.signal });
const written = [stdout, stderr].map((stream) => new Promise<void>((done) => stream.write("", () => done())));
await Promise.all(written);
process.exit(code);
