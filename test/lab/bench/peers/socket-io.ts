import { createServer } from "node:http";
import { createAdapter } from "@socket.io/redis-adapter";
import { Redis } from "ioredis";
import { Server } from "socket.io";
import { listenAndSay, setting } from "./listening.ts";

/** One Socket.IO server with the Redis adapter: an agent is a room, and nothing is checked. */

const publisher = new Redis(setting("REDIS_PATH"));
const subscriber = new Redis(setting("REDIS_PATH"));
const server = createServer();
const io = new Server(server, {
  transports: ["websocket"],
  perMessageDeflate: false,
  adapter: createAdapter(publisher, subscriber),
});

io.on("connection", (socket) => {
  socket.on("register", async (agents: string[], done: () => void) => {
    await socket.join(agents);
    done();
  });
  socket.on("send", (to: string, message: object) => io.to(to).emit("deliver", message));
});
listenAndSay(server);
