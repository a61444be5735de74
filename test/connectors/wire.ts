import type { WireProxy } from "../../connector/test/wire-proxy.ts";
import type { Frame } from "../support/agent.ts";

/** What befalls the connections of one agent, or what a relay says that is not to be believed. */
const DISTURBANCES: Readonly<Record<string, (proxy: WireProxy, given: Frame) => void>> = {
  /** The network breaks. */
  cuts: (proxy) => proxy.cut(),
  /** The relay closes the connection. */
  closes: (proxy, { code }) => proxy.closeAgents(code),
  tells: (proxy, frame) => proxy.tell(frame),
  /** The network breaks just before the next frame of the relay that is like this, once. */
  cuts_before: (proxy, { then_refuses: next, ...like }) => {
    const pass = proxy.toAgent;
    proxy.toAgent = (frame) => {
      if (!isLike(frame, like)) return pass(frame);
      proxy.toAgent = pass;
      if (next !== undefined) disturb(proxy, "refuses", next);
      return void proxy.cut();
    };
  },
  /** The relay closes the connection right behind the next frame that is like this, with a notice between. Look-ups are answered once it is closed. */
  ends_behind: (proxy, { like, notice, code }) => {
    const [pass, lookUp] = [proxy.toAgent, proxy.lookUp];
    proxy.lookUp = async (path) => {
      await proxy.left();
      return await lookUp(path);
    };
    proxy.toAgent = (frame) => {
      if (!isLike(frame, like)) return pass(frame);
      proxy.toAgent = pass;
      queueMicrotask(() => {
        if (notice !== undefined) proxy.tell(notice);
        proxy.closeAgents(code);
      });
      return pass(frame);
    };
  },
  /** The next frame of the relay that is like this comes with other members. */
  alters: (proxy, { like, members }) => {
    const pass = proxy.toAgent;
    proxy.toAgent = (frame) => {
      if (!isLike(frame, like)) return pass(frame);
      proxy.toAgent = pass;
      return merged(frame, members);
    };
  },
  /** The next envelope of this type does not reach the relay, and is answered by this error frame of a relay whose clock is so far off. */
  refuses: (proxy, { type, error, clock_ms = 0 }) => {
    proxy.toRelay = (envelope) => {
      if (envelope.type !== type) return envelope;
      proxy.toRelay = (next) => next;
      return void proxy.tell({
        frame: "error",
        envelope_id: envelope.id,
        server_time: Date.now() + clock_ms,
        ...error,
      });
    };
  },
};

export function disturb(proxy: WireProxy, does: string, given: Frame): void {
  const disturbance = DISTURBANCES[does];
  if (disturbance === undefined) throw new Error(`Nothing on a wire does ${does}.`);
  disturbance(proxy, given);
}

function isLike(frame: Frame, like: Frame): boolean {
  return Object.entries(like).every(([name, value]) => frame[name] === value);
}

function merged(value: Frame, members: Frame): Frame {
  if (typeof members !== "object" || members === null) return members;
  const changed = Object.entries(members).map(([name, member]) => [name, merged(value?.[name], member)]);
  return { ...value, ...Object.fromEntries(changed) };
}
