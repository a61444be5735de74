import type { PodChannelEvents } from "../src/pod-channel.ts";

/** For a listener that is after some of what comes in over a pod's channel. */
export const IGNORED: PodChannelEvents = {
  deliver: () => {},
  superseded: () => {},
  probe: () => {},
  disconnect: () => {},
  traced: () => {},
};
