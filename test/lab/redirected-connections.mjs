/** Preloaded (`--import`) into a process: what connects to a port of REDIRECTED_PORTS (`port:other,…`) comes to the other one. */
import { Socket } from "node:net";

const ports = new Map(process.env.REDIRECTED_PORTS.split(",").map((pair) => pair.split(":").map(Number)));
const { connect } = Socket.prototype;

Socket.prototype.connect = function (...args) {
  const [options] = Array.isArray(args[0]) ? args[0] : args;
  if (ports.has(Number(options?.port))) options.port = ports.get(Number(options.port));
  return connect.apply(this, args);
};
