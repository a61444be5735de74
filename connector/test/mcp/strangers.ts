import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";

/**
 * A process of strangers, of the lowest priority, since they stand for other machines: `strangers.ts <url>` holds as many
 * connections to the server of `relay mcp --http` as it leaves them, until it is killed. Says `holding` once all are there.
 */

const CONNECTIONS = 64;
const DRIP_MS = 100;
const HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n";
const MEBIBYTE = "x".repeat(2 ** 20);

/** What a connection of each kind does, from its first byte on. */
const KINDS: readonly ((socket: Socket) => void)[] = [
  function silence() {},
  function endlessHeaders(socket) {
    socket.write(HEAD);
    const drip = setInterval(() => socket.write("X-More: 1\r\n"), DRIP_MS);
    socket.once("close", () => clearInterval(drip));
  },
  function hugeBody(socket) {
    const more = () => {
      while (socket.write(MEBIBYTE));
    };
    socket.write(`${HEAD}Content-Length: ${2 ** 40}\r\n\r\n`);
    socket.on("drain", more);
    more();
  },
  function wrongTokens(socket) {
    const again = () => socket.write(`${HEAD}Content-Length: 0\r\n\r\n`);
    socket.on("data", again);
    again();
  },
];

const { hostname, port } = new URL(process.argv[2] as string);
let held = 0;

/** Comes back whenever the connection ends. */
function hold(kind: (socket: Socket) => void): void {
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.once("connect", () => {
    kind(socket);
    socket.resume();
    held += 1;
    if (held === CONNECTIONS) process.stdout.write("holding\n");
  });
  socket.once("close", () => hold(kind));
}

setPriority(constants.priority.PRIORITY_LOW);
for (let n = 0; n < CONNECTIONS; n += 1) hold(KINDS[n % KINDS.length] as (typeof KINDS)[number]);
