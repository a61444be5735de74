import { once } from "node:events";
import { connect } from "node:net";

/** One answer of a server, as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  /** Status line and fields, without the empty line. */
  readonly head: string;
  readonly text: string;
}

/**
 * Writes bytes on a connection of its own and reads all that comes back until the server closes it.
 * @param pieces written one after the other, each in a packet of its own.
 */
export async function answersTo(port: number, ...pieces: readonly (string | Uint8Array)[]): Promise<RawAnswer[]> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("error", () => {});
  for (const piece of pieces) {
    const bytes = typeof piece === "string" ? Buffer.from(piece, "latin1") : piece;
    await new Promise((resolve) => socket.write(bytes, resolve));
  }
  if (!socket.closed) await once(socket, "close");
  return parse(Buffer.concat(chunks).toString("latin1"));
}

/** Answers one after the other. Source: RFC 9112, section 6.3. */
function parse(bytes: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf("\r\n\r\n", at);
    const head = bytes.slice(at, end < 0 ? bytes.length : end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
    const start = at + head.length + 4;
    const isChunked = /^transfer-encoding: chunked$/im.test(head);
    const body = isChunked ? chunksAt(bytes, start) : { text: bytes.slice(start, start + length), end: start + length };
    answers.push({ status, head, text: body.text });
    at = body.end;
  }
  return answers;
}

function chunksAt(bytes: string, start: number): { readonly text: string; readonly end: number } {
  let text = "";
  for (let at = start; ; ) {
    const line = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.slice(at, line), 16);
    if (!(size > 0)) return { text, end: line + 4 };
    text += bytes.slice(line + 2, line + 2 + size);
    at = line + 4 + size;
  }
}

/** The bytes of a request that ends its connection. Fields and body may be anything. */
export function request(
  method: string,
  target: string,
  { fields = [], body = "" }: { readonly fields?: readonly string[]; readonly body?: string | Uint8Array } = {},
): Buffer {
  const bytes = Buffer.from(body);
  const length = method === "GET" || method === "HEAD" ? [] : [`Content-Length: ${bytes.length}`];
  const head = [`${method} ${target} HTTP/1.1`, "Host: relay", "Connection: close", ...length, ...fields, "", ""];
  return Buffer.concat([Buffer.from(head.join("\r\n"), "latin1"), bytes]);
}
