import { createServer } from "node:http";
import { Redis } from "ioredis";
import { type WebSocket, WebSocketServer } from "ws";
import { listenAndSay, REDIS_CLIENT, setting, WEBSOCKETS } from "./peer.ts";

/**
 * One pod of a relay that checks nothing: what comes in for an agent is published to the pod that has it, which is this
 * one or, so the routes have it, the other. With `ACKS` it tells the sender when Redis has taken a message.
 */

/** What fills an ack up to about 150 bytes, as one that says how a message fared has. */
const REST_OF_ACK = `"accepted":true,"delivery":"realtime","note":"${"x".repeat(75)}"}`;

const own = Buffer.from(setting("POD"));
const other = Buffer.from(setting("OTHER_POD"));
const acks = setting("ACKS") === "yes";
const publisher = new Redis(setting("REDIS_PATH"), REDIS_CLIENT);
const subscriber = new Redis(setting("REDIS_PATH"));
const sockets = new Map<string, WebSocket>();

await subscriber.subscribe(own);
subscriber.on("messageBuffer", (_channel, message: Buffer) => {
  sockets.get(JSON.parse(message.toString()).to)?.send(message, { binary: false });
});

const server = createServer();
new WebSocketServer({ server, ...WEBSOCKETS }).on("connection", (socket) => {
  socket.on("message", (message: Buffer) => {
    const { register, to, id } = JSON.parse(message.toString());
    if (register !== undefined) {
      for (const agent of register) sockets.set(agent, socket);
      socket.send(JSON.stringify({ registered: register.length }));
      return;
    }
    const published = publisher.publish(sockets.has(to) ? own : other, message);
    if (acks) void published.then(() => socket.send(`{"ack":"${id}",${REST_OF_ACK}`));
  });
});
listenAndSay(server);
