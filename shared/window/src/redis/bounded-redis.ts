import { type Command, Redis } from "ioredis";
import { REDIS_LIMITS } from "./limits.ts";

type Stream = Parameters<Redis["sendCommand"]>[1];

/** A command that was given up without an answer. */
export class CommandTimeoutError extends Error {
  constructor() {
    super("Command timed out");
    this.name = "CommandTimeoutError";
  }
}

/**
 * A client whose commands are each given up after 450 ms without an answer: in its own `commandTimeout` an answer that came
 * while this process could not run (a pause of the collector, a quota of CPU that is used up) counts as none, for timers
 * run before sockets are read. Here what has arrived is read first.
 */
export class BoundedRedis extends Redis {
  override sendCommand(command: Command, stream?: Stream): unknown {
    const giveUp = () => command.reject(new CommandTimeoutError());
    const timer = setTimeout(() => setImmediate(giveUp), REDIS_LIMITS.commandTimeoutMs);
    const settled = () => clearTimeout(timer);
    command.promise.then(settled, settled);
    return super.sendCommand(command, stream);
  }
}
