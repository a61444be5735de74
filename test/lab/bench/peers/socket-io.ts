import { createServer } from "node:http";
import { createAdapter, createShardedAdapter } from "@socket.io/redis-adapter";
import { Redis } from "ioredis";
import { Server } from "socket.io";
import { listenAndSay, REDIS_CLIENT, SHARDED_ADAPTER, SOCKET_IO, setting } from "./peer.ts";

/** One Socket.IO server with a Redis adapter, `ADAPTER`: an agent is a room, and nothing is checked. */

const publisher = new Redis(setting("REDIS_PATH"), REDIS_CLIENT);
const subscriber = new Redis(setting("REDIS_PATH"));
const adapter =
  setting("ADAPTER") === "sharded"
    ? createShardedAdapter(publisher, subscriber, SHARDED_ADAPTER)
    : createAdapter(publisher, subscriber);
const server = createServer();
const io = new Server(server, { ...SOCKET_IO, transports: [...SOCKET_IO.transports], adapter });

io.on("connection", (socket) => {
  socket.on("register", async (agents: string[], done: () => void) => {
    await socket.join(agents);
    done();
  });
  socket.on("send", (to: string, message: object) => io.to(to).emit("deliver", message));
});
listenAndSay(server);
