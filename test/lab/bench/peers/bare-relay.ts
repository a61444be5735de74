import { createServer } from "node:http";
import { Redis } from "ioredis";
import { type WebSocket, WebSocketServer } from "ws";
import { listenAndSay, setting } from "./listening.ts";

/**
 * One pod of a relay that checks nothing: what comes in for an agent is published to the pod that has it, which is this
 * one or, so the routes have it, the other.
 */

const own = setting("POD");
const other = setting("OTHER_POD");
const publisher = new Redis(setting("REDIS_PATH"));
const subscriber = new Redis(setting("REDIS_PATH"));
const sockets = new Map<string, WebSocket>();

await subscriber.subscribe(own);
subscriber.on("message", (_channel, text) => {
  sockets.get(JSON.parse(text).to)?.send(text);
});

const server = createServer();
new WebSocketServer({ server, perMessageDeflate: false, clientTracking: false }).on("connection", (socket) => {
  socket.on("message", (data: Buffer) => {
    const text = data.toString();
    const { register, to } = JSON.parse(text);
    if (register !== undefined) {
      for (const agent of register) sockets.set(agent, socket);
      socket.send(JSON.stringify({ registered: register.length }));
    } else {
      void publisher.publish(sockets.has(to) ? own : other, text);
    }
  });
});
listenAndSay(server);
