import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of the test's own, removed with all it holds: `await using folder = await temporaryFolder()`. */
export async function temporaryFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "agent-relay-test-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** A text in the encodings that PowerShell writes, with the line ends of Windows. */

const MARK = "\ufeff";

/** UTF-8 with a byte order mark. */
export function markedUtf8(text: string): Buffer {
  return Buffer.from(MARK + windowsLines(text));
}

export function utf16le(text: string): Buffer {
  return Buffer.from(MARK + windowsLines(text), "utf16le");
}

export function utf16be(text: string): Buffer {
  return utf16le(text).swap16();
}

/** JSON in UTF-16 without a byte order mark. */
export const UNMARKED_UTF_16 = [Buffer.from("{}", "utf16le"), Buffer.from("{}", "utf16le").swap16()];

/** For tests of each of the two. */
export const UTF_16 = [
  ["UTF-16 LE", utf16le],
  ["UTF-16 BE", utf16be],
] as const;

function windowsLines(text: string): string {
  return text.replaceAll("\n", "\r\n");
}
