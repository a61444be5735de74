import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** A reply in RESP2: a status or an error as it stands, or the text of a bulk string. */
type Answer = { readonly raw: string } | { readonly bulk: string };

const DEFAULTS: Readonly<Record<string, Answer>> = {
  HELLO: { raw: "-NOPROTO unsupported protocol version" },
  PING: { raw: "+PONG" },
};

/** Speaks enough of Redis' protocol to be taken for one, whatever version it says it is; counts its connections. */
export class FakeRedis {
  /** When each connection came in: `performance.now()`. */
  readonly connectedAt: number[] = [];
  readonly #answers: Readonly<Record<string, Answer>>;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => this.#serve(socket));

  /** @param answers by command, in upper case; every other command is answered OK. */
  constructor(answers: Readonly<Record<string, Answer>>) {
    this.#answers = { ...DEFAULTS, ...answers };
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async start(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket): void {
    this.connectedAt.push(performance.now());
    this.#sockets.add(socket);
    let received = "";
    socket.setEncoding("latin1");
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (chunk) => {
      const { commands, rest } = commandsIn(received + chunk);
      received = rest;
      for (const command of commands) socket.write(resp(this.#answers[command.toUpperCase()] ?? { raw: "+OK" }));
    });
  }
}

function resp(answer: Answer): string {
  return "raw" in answer ? `${answer.raw}\r\n` : `$${answer.bulk.length}\r\n${answer.bulk}\r\n`;
}

/** The names of the whole commands in a stream: arrays of bulk strings. */
function commandsIn(text: string): { readonly commands: string[]; readonly rest: string } {
  const commands: string[] = [];
  let rest = text;
  for (;;) {
    const words = wordsOf(rest);
    if (words === null) return { commands, rest };
    commands.push(words.first);
    rest = rest.slice(words.length);
  }
}

function wordsOf(text: string): { readonly first: string; readonly length: number } | null {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return null;
  const words: string[] = [];
  let at = head[0].length;
  for (let n = 0; n < Number(head[1]); n += 1) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at, at + 16));
    if (size === null) return null;
    const start = at + size[0].length;
    at = start + Number(size[1]) + 2;
    if (text.length < at) return null;
    words.push(text.slice(start, at - 2));
  }
  return { first: words[0] ?? "", length: at };
}
