import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { instant, type Pids, type Span, spanOf } from "../../accounting.ts";

/** POSTs over connections that stay open, one request under way on each. */
export interface Posts {
  readonly port: number;
  readonly path: string;
  readonly body: string;
  /** Sent in turn, each at most `usesPerKey` times. */
  readonly apiKeys: readonly string[];
  readonly usesPerKey: number;
  readonly connections: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly pids: Pids;
}

/** Posts as fast as the answers come. @throws Error at any answer but 202. */
export async function post(posts: Posts): Promise<Span & { readonly accepted: number }> {
  let accepted = 0;
  let sent = 0;
  let running = true;
  const next = (socket: Socket) => {
    const apiKey = posts.apiKeys[Math.floor(sent / posts.usesPerKey)];
    if (apiKey === undefined) throw new Error("The API keys are used up.");
    sent += 1;
    socket.write(requestText(posts, apiKey));
  };
  /** A server takes so many requests on one connection, and says when it was the last. */
  const drive = async () => {
    const socket = await openTo(posts.port);
    readAnswers(socket, (isLast) => {
      accepted += 1;
      if (isLast || !running) socket.destroy();
      if (isLast && running) void drive();
      else if (running) next(socket);
    });
    next(socket);
  };
  await Promise.all(Array.from({ length: posts.connections }, drive));
  await delay(posts.warmUpMs);
  const before = { ...instant(posts.pids), accepted };
  await delay(posts.measureMs);
  const span = { ...spanOf(before, instant(posts.pids)), accepted: accepted - before.accepted };
  running = false;
  while (accepted < sent) await delay(1);
  return span;
}

function requestText({ port, path, body }: Posts, apiKey: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nX-Api-Key: ${apiKey}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  );
}

async function openTo(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  await once(socket, "connect");
  return socket;
}

function readAnswers(socket: Socket, answered: (isLast: boolean) => void): void {
  let data = "";
  socket.on("data", (chunk: Buffer) => {
    data += chunk.toString("latin1");
    const bodyAt = data.indexOf("\r\n\r\n") + 4;
    if (bodyAt < 4) return;
    const length = Number(/content-length: (\d+)/i.exec(data)?.[1] ?? Number.NaN);
    if (Number.isNaN(length)) throw new Error(`An answer without length: ${data}`);
    if (data.length < bodyAt + length) return;
    if (!data.startsWith("HTTP/1.1 202")) throw new Error(`Not accepted: ${data}`);
    const isLast = /connection: close/i.test(data.slice(0, bodyAt));
    data = "";
    answered(isLast);
  });
}
