import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createInterface, type Interface } from "node:readline";
import type { Redis } from "ioredis";

/** A command as MONITOR shows it. */
export interface MonitoredCommand {
  readonly name: string;
  readonly args: readonly string[];
  /** True when a script ran it. */
  readonly inScript: boolean;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", a: "\x07", b: "\b" };

/**
 * MONITOR over a socket of its own. ioredis's loses its place when the first command comes in one piece with the answer to
 * MONITOR, which it does where pods publish all the time.
 */
export class RedisMonitor {
  readonly #socket: Socket;
  readonly #lines: Interface;

  private constructor(socket: Socket, lines: Interface) {
    this.#socket = socket;
    this.#lines = lines;
  }

  /** @param client of the server to watch. */
  static async open({ options }: Redis, onCommand: (command: MonitoredCommand) => void): Promise<RedisMonitor> {
    const { path, host, port = 6379 } = options;
    const socket = path === undefined ? connect(port, host) : connect(path);
    await once(socket, "connect");
    const lines = createInterface({ input: socket });
    const answered = once(lines, "line");
    const credentials = [options.username, options.password].filter((word) => typeof word === "string");
    if (credentials.length > 0) socket.write(encode("AUTH", ...credentials));
    socket.write(encode("MONITOR"));
    const [answer] = await answered;
    if (answer !== "+OK") throw new Error(`Redis answered ${answer}`);
    lines.on("line", (line) => {
      const command = parseCommand(line);
      if (command !== null) onCommand(command);
    });
    return new RedisMonitor(socket, lines);
  }

  /** Resolves once it has shown every command that the server ran before. @param client of the same server. */
  async caughtUp(client: Redis): Promise<void> {
    const mark = randomUUID();
    const shown = new Promise<void>((resolve) => {
      this.#lines.on("line", (line) => line.includes(mark) && resolve());
    });
    await client.echo(mark);
    await shown;
  }

  close(): void {
    this.#socket.destroy();
  }
}

function encode(...words: readonly string[]): string {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${words.length}\r\n${parts.join("")}`;
}

/** Reads `+<time> [<database> <source>] "<name>" "<argument>" …`; null for any other line. */
function parseCommand(line: string): MonitoredCommand | null {
  const [, source, rest] = line.match(/^\+[\d.]+ \[\d+ (\S+)\] (.*)$/) ?? [];
  if (source === undefined || rest === undefined) return null;
  const [name = "", ...args] = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = ""]) => unescapeText(text));
  return { name: name.toLowerCase(), args, inScript: source === "lua" };
}

/** Bytes beyond ASCII stand there as hexadecimal digits, one by one. */
function unescapeText(text: string): string {
  const bytes = text.replace(/\\(?:x([0-9a-f]{2})|(.))/g, (_, hex: string | undefined, character: string) =>
    hex === undefined ? (ESCAPES[character] ?? character) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, "latin1").toString();
}
