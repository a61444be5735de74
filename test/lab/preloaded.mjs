/**
 * Preloaded (`--import`) into a process whose clock is to be off by CLOCK_SHIFT_MS, or whose connections to a port of
 * REDIRECTED_PORTS (`port:other,…`) come to the other one.
 */
import { Socket } from "node:net";

const { CLOCK_SHIFT_MS = "0", REDIRECTED_PORTS = "" } = process.env;

const trueNow = Date.now;
if (CLOCK_SHIFT_MS !== "0") Date.now = () => trueNow() + Number(CLOCK_SHIFT_MS);

const ports = new Map((REDIRECTED_PORTS.match(/\d+:\d+/g) ?? []).map((pair) => pair.split(":").map(Number)));
const { connect } = Socket.prototype;

Socket.prototype.connect = function (...args) {
  const [options] = Array.isArray(args[0]) ? args[0] : args;
  if (ports.has(Number(options?.port))) options.port = ports.get(Number(options.port));
  return connect.apply(this, args);
};
