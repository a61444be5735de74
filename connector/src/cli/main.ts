import { run } from "./run.ts";

/** The process of `relay`: signals, streams that break, and the exit code. */
const stopped = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopped.abort());

// A reader that goes away (relay listen | head -1) is no fault; what it did not read has nowhere to go.
process.stdout.on("error", () => stopped.abort());
process.stderr.on("error", () => {});

const { env, stdin, stdout, stderr } = process;
const code = await run(process.argv.slice(2), { env, stdin, stdout, stderr, signal: stopped.signal });
const written = [stdout, stderr].map((stream) => new Promise<void>((done) => stream.write("", () => done())));
await Promise.all(written);
process.exit(code);
