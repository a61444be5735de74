/** Where the image `all` has the id of the relay's process, which is another one after HUP. Source: docs/testing.md#containers. */
export const PID_FILE = "/tmp/agent-relay.pid";
