import type { Socket } from "node:net";
import { FORWARDED } from "../support/addresses.ts";
import type { Launch, Target } from "../target.ts";
import { type Onslaught, strands } from "./onslaught.ts";
import { ended, openSocket } from "./wire.ts";

/** A request, as the edge passes it on. */
export interface Request {
  readonly path: string;
  /** Which of the attack's addresses it comes from. */
  readonly address: number;
  readonly body?: string;
  readonly lines?: readonly string[];
}

interface Breadth {
  readonly connections: number;
  /** Requests under way on each at once. */
  readonly underWay: number;
}

const USUAL: Breadth = { connections: 20, underWay: 10 };

/** Requests on connections that stay open, as fast as the answers come. */
export function flood(target: Target, port: number, request: (n: number) => Request, breadth = USUAL): Launch {
  const { connections, underWay } = breadth;
  let sent = 0;
  return strands(target, connections, async (on) => {
    const socket = await openSocket(port);
    if (socket === undefined) return;
    on.connections += 1;
    const send = () => {
      const made = request(sent);
      sent += 1;
      write(on, socket, textOf(made, on.address(made.address)));
    };
    onAnswers(socket, (count) => {
      for (let n = 0; n < count && !on.isOver; n += 1) send();
    });
    for (let n = 0; n < underWay; n += 1) send();
    await ended(socket, on.over);
  });
}

export function textOf({ path, body, lines = [] }: Request, address: string): string {
  const head = [`Host: 127.0.0.1`, `${FORWARDED}: ${address}`, ...lines];
  if (body === undefined) return `GET ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`;
  const fields = [...head, "Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`];
  return `POST ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`;
}

export function write(on: Onslaught, socket: Socket, text: string): void {
  on.frames += 1;
  on.bytes += text.length;
  socket.write(text);
}

const STATUS_LINE = "HTTP/1.1 ";

/** Calls with how many answers began in what came in. */
function onAnswers(socket: Socket, answered: (count: number) => void): void {
  let rest = "";
  socket.on("data", (chunk: Buffer) => {
    const text = rest + chunk.toString("latin1");
    rest = text.slice(1 - STATUS_LINE.length);
    answered(text.split(STATUS_LINE).length - 1);
  });
}
