/** What process 1 of the image `all` tells in files. Source: docs/testing.md#containers. */

/** The id of the relay's process, which is another one after HUP. */
export const PID_FILE = "/tmp/agent-relay.pid";
/** How many of the signals that are about Redis it has done. */
export const REDIS_TURNS_FILE = "/tmp/agent-relay.redis-turns";
