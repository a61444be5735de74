import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { Connection, ConnectionEvents } from "../src/connection.ts";
import { finalClose, RelayError } from "../src/errors.ts";
import type { Frame, HelloFrame } from "../src/frames.ts";
import { Keepalive } from "../src/keepalive.ts";
import {
  ANSWER_WITHIN_MS,
  BACKOFF,
  DRAINING_CAP_MS,
  MAX_RETIRED,
  RETIRED_MS,
  RETRY_AFTER_CAP_MS,
} from "../src/limits.ts";
import { Reconnector } from "../src/reconnector.ts";

/** When a connection is given up, and what comes after it. */

describe("The heartbeats of a connection", () => {
  const INTERVAL_MS = 15_000;
  const TICK_MS = 1000;
  const sendHeartbeat = jest.fn();
  const timedOut = jest.fn();
  let keepalive: Keepalive;

  beforeEach(() => {
    jest.useFakeTimers();
    keepalive = new Keepalive({ intervalMs: INTERVAL_MS, sendHeartbeat, timedOut });
    keepalive.start();
  });

  afterEach(() => {
    keepalive.stop();
    jest.useRealTimers();
    jest.restoreAllMocks();
    jest.clearAllMocks();
  });

  test("A heartbeat goes out in every interval, and no more than one", () => {
    for (let n = 1; n <= 10; n += 1) {
      jest.advanceTimersByTime(INTERVAL_MS);
      expect(sendHeartbeat.mock.calls.length).toBeGreaterThanOrEqual(n);
      expect(sendHeartbeat.mock.calls.length).toBeLessThanOrEqual(n + 1);
    }
  });

  test("A connection ends when a request has no answer in time, and nothing else came in", () => {
    keepalive.requestSent();
    jest.advanceTimersByTime(ANSWER_WITHIN_MS);
    keepalive.frameReceived();
    jest.advanceTimersByTime(ANSWER_WITHIN_MS);
    keepalive.requestSent();
    jest.advanceTimersByTime(ANSWER_WITHIN_MS / 2);
    keepalive.requestSent();
    jest.advanceTimersByTime(ANSWER_WITHIN_MS / 2);
    expect(timedOut).not.toHaveBeenCalled();
    jest.advanceTimersByTime(2 * TICK_MS);
    expect(timedOut).toHaveBeenCalled();
  });

  test("A connection ends when nothing is answered for two intervals after a heartbeat, whatever else comes in", () => {
    const seconds = (count: number) => {
      for (let n = 0; n < count; n += 1) {
        jest.advanceTimersByTime(TICK_MS);
        keepalive.frameReceived();
      }
    };
    keepalive.heartbeatSent();
    seconds((2 * INTERVAL_MS) / TICK_MS);
    keepalive.answered();
    keepalive.heartbeatSent();
    seconds((2 * INTERVAL_MS) / TICK_MS);
    expect(timedOut).not.toHaveBeenCalled();
    keepalive.heartbeatSent();
    seconds(1);
    expect(timedOut).toHaveBeenCalled();
  });

  test("A connection with a short interval ends when a request has no answer for that long", () => {
    keepalive.stop();
    keepalive = new Keepalive({ intervalMs: 400, sendHeartbeat, timedOut });
    keepalive.start();
    keepalive.requestSent();
    jest.advanceTimersByTime(400);
    expect(timedOut).not.toHaveBeenCalled();
    jest.advanceTimersByTime(200);
    expect(timedOut).toHaveBeenCalled();
  });

  test("A process that stood still for an interval reads what came in before it gives its connection up", () => {
    keepalive.stop();
    keepalive = new Keepalive({ intervalMs: 400, sendHeartbeat, timedOut });
    keepalive.start();
    keepalive.requestSent();
    const [monotonic, machine] = [performance.now(), Date.now()];
    jest.spyOn(performance, "now").mockImplementation(() => monotonic + 2000);
    jest.spyOn(Date, "now").mockImplementation(() => machine + 2000);
    jest.advanceTimersByTime(100);
    expect(timedOut).not.toHaveBeenCalled();
  });

  test("After a sleep of the machine a heartbeat goes out at once, and nothing ends", () => {
    keepalive.requestSent();
    keepalive.heartbeatSent();
    jest.setSystemTime(Date.now() + 3_600_000);
    jest.advanceTimersByTime(TICK_MS);
    expect(sendHeartbeat).toHaveBeenCalledTimes(1);
    jest.advanceTimersByTime(ANSWER_WITHIN_MS);
    expect(sendHeartbeat).toHaveBeenCalledTimes(1);
    expect(timedOut).not.toHaveBeenCalled();
  });
});

describe("The connections of an agent", () => {
  type Passed = Exclude<Frame, HelloFrame>;

  /** A connection that does what the test says, in the order in which a network might. */
  class TestConnection {
    isClosed = false;
    registeredAgain = 0;
    readonly #events: ConnectionEvents;

    constructor(events: ConnectionEvents) {
      this.#events = events;
    }

    open(): void {}

    check(): void {}

    registerAgain(): void {
      this.registeredAgain += 1;
    }

    async close(): Promise<void> {
      this.isClosed = true;
    }

    registers(): void {
      this.#events.registered(this as never as Connection);
    }

    says(frame: object): void {
      this.#events.frame(this as never as Connection, frame as Passed);
    }

    ends(error?: RelayError, cause?: RelayError): void {
      const closeCode = error?.closeCode ?? 1006;
      this.#events.ended(this as never as Connection, { reason: "lost", closeCode, error, cause });
    }
  }

  const DRAINING = { frame: "notice", notice: { kind: "draining", reconnectAfterMs: 300 } };
  const draining = (reconnectAfterMs: number) => ({ frame: "notice", notice: { kind: "draining", reconnectAfterMs } });
  const SUPERSEDED = { frame: "notice", notice: { kind: "superseded" } };
  let connections: TestConnection[];
  let said: string[];
  let reconnector: Reconnector;
  const mayReturn = jest.fn(({ code }: RelayError) => code === "invalid_credential");
  let changed: PromiseWithResolvers<boolean>;

  beforeEach(() => {
    jest.useFakeTimers();
    connections = [];
    said = [];
    changed = Promise.withResolvers();
    const createConnection = (events: ConnectionEvents) => {
      const connection = new TestConnection(events);
      connections.push(connection);
      return connection as never as Connection;
    };
    reconnector = new Reconnector(createConnection, {
      greeted: () => {},
      online: (connection) => said.push(`online ${connections.indexOf(connection as never)}`),
      offline: () => said.push("offline"),
      frame: (frame) => said.push(frame.frame === "notice" ? frame.notice.kind : frame.frame),
      presenceRefused: ({ code }) => said.push(`presenceRefused ${code}`),
      mayReturn,
      hasChanged: () => changed.promise,
      ended: ({ code }) => said.push(`ended ${code}`),
    });
    reconnector.start();
  });
  afterEach(async () => {
    await reconnector.stop();
    jest.useRealTimers();
  });

  /** The first connection is registered, its pod drains, and the second one is on its way. */
  function drain(): [TestConnection, TestConnection] {
    connections[0]?.registers();
    connections[0]?.says(DRAINING);
    jest.advanceTimersByTime(299);
    expect(connections).toHaveLength(1);
    jest.advanceTimersByTime(152);
    expect(connections).toHaveLength(2);
    said.splice(0);
    return connections as [TestConnection, TestConnection];
  }

  test("A connection that drains is read until its relay closes it, after the next one was registered", () => {
    const [former, next] = drain();
    former.says({ frame: "deliver" });
    next.registers();
    expect(former.isClosed).toBe(false);
    for (const frame of ["deliver", "ack", "error"]) former.says({ frame });
    former.says(SUPERSEDED);
    former.ends(finalClose(4409));
    expect(said).toEqual(["deliver", "online 1", "deliver", "ack"]);
  });

  test("A connection that drains and is never closed by its relay is closed here in the end", () => {
    const [former, next] = drain();
    next.registers();
    jest.advanceTimersByTime(RETIRED_MS);
    expect([former.isClosed, next.isClosed]).toEqual([true, false]);
  });

  test("The news that the next connection took the agent may overtake the ack of its register", () => {
    const [former, next] = drain();
    former.says(SUPERSEDED);
    former.ends(finalClose(4409));
    next.registers();
    expect(said).toEqual(["online 1"]);
  });

  test("A connection that ends before the next one is registered leaves the agent without a connection for a while", () => {
    const [former, next] = drain();
    former.ends();
    next.registers();
    expect(said).toEqual(["offline", "online 1"]);
  });

  test("A next connection that fails leaves the draining one in force, and another is tried", () => {
    const [former, next] = drain();
    next.ends();
    jest.advanceTimersByTime(5000);
    expect(connections).toHaveLength(3);
    former.says({ frame: "deliver" });
    expect(said).toEqual(["deliver"]);
  });

  test("A connection superseded with no other on its way is the end", () => {
    connections[0]?.registers();
    connections[0]?.ends(finalClose(4409));
    jest.advanceTimersByTime(60_000);
    expect(said).toEqual(["online 0", "ended superseded"]);
    expect(connections).toHaveLength(1);
  });

  test("A relay that loses its connections at once is asked ever less often, one that held them soon again", () => {
    jest.spyOn(Math, "random").mockReturnValue(1);
    const waits: number[] = [];
    const fail = (heldMs: number) => {
      connections.at(-1)?.registers();
      jest.advanceTimersByTime(heldMs);
      connections.at(-1)?.ends();
      const before = connections.length;
      const at = performance.now();
      while (connections.length === before) jest.advanceTimersToNextTimer();
      waits.push(performance.now() - at);
    };
    for (const heldMs of [0, 0, 0, 4999, 0, 0, 5000, 0]) fail(heldMs);
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 5000, 250, 500]);
    jest.restoreAllMocks();
  });

  test("A relay that drains every connection at once is asked ever less often, and holds few of them", () => {
    jest.spyOn(Math, "random").mockReturnValue(1);
    const waits: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      connections.at(-1)?.registers();
      connections.at(-1)?.says({ frame: "notice", notice: { kind: "draining", reconnectAfterMs: 0 } });
      const [before, at] = [connections.length, performance.now()];
      while (connections.length === before) jest.advanceTimersByTime(10);
      waits.push(performance.now() - at);
      const open = connections.filter(({ isClosed }) => !isClosed).length;
      expect(open).toBeLessThanOrEqual(MAX_RETIRED + 2);
    }
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
    jest.restoreAllMocks();
  });

  test("A relay that drains a connection that lasted is left at once, however many attempts came before", () => {
    jest.spyOn(Math, "random").mockReturnValue(1);
    const waits: number[] = [];
    for (const lastedMs of [0, 0, 4999, 5000, 0]) {
      connections.at(-1)?.registers();
      jest.advanceTimersByTime(lastedMs);
      connections.at(-1)?.says(draining(0));
      const at = performance.now();
      jest.advanceTimersToNextTimer();
      waits.push(performance.now() - at);
    }
    expect(waits).toEqual([250, 500, 1000, 250, 500]);
    jest.restoreAllMocks();
  });

  test("A relay that drains is left for another within half a minute and its jitter, whatever it asks for", () => {
    connections[0]?.registers();
    connections[0]?.says(draining(3_600_000));
    jest.advanceTimersByTime(DRAINING_CAP_MS - 1);
    expect(connections).toHaveLength(1);
    jest.advanceTimersByTime(DRAINING_CAP_MS / 2 + 1);
    expect(connections).toHaveLength(2);
  });

  test("A connection that is lost while it drains is replaced as soon as any other, once", () => {
    connections[0]?.registers();
    connections[0]?.says(draining(20_000));
    connections[0]?.ends();
    jest.advanceTimersByTime(BACKOFF.capMs);
    expect(connections).toHaveLength(2);
    connections[1]?.registers();
    jest.advanceTimersByTime(60_000);
    expect(connections).toHaveLength(2);
  });

  test("A connection that is lost while it drains is replaced no sooner than what refused the next one asked", () => {
    const [former, next] = drain();
    next.ends(undefined, new RelayError("unreachable", { retryAfterMs: 20_000 }));
    former.ends();
    jest.advanceTimersByTime(20_000 - 1);
    expect(connections).toHaveLength(2);
    jest.advanceTimersByTime(10_000 + 1);
    expect(connections).toHaveLength(3);
  });

  test("What refuses a connection is left alone for a minute at most", () => {
    connections[0]?.ends(undefined, new RelayError("unreachable", { retryAfterMs: RETRY_AFTER_CAP_MS }));
    jest.advanceTimersByTime(RETRY_AFTER_CAP_MS - 1);
    expect(connections).toHaveLength(1);
    jest.advanceTimersByTime(1);
    expect(connections).toHaveLength(2);
  });

  test("A key that the relay refuses on a next connection is the end too", () => {
    const [, next] = drain();
    next.ends(new RelayError("unknown_key"));
    expect(said).toEqual(["ended unknown_key"]);
  });

  test.each([
    [true, ["offline"], 2],
    [false, ["offline", "ended invalid_credential"], 1],
  ])("An end that a change can mend leads to another attempt where there is one: %s", async (has, told, attempts) => {
    connections[0]?.ends(new RelayError("invalid_credential"));
    await jest.advanceTimersByTimeAsync(1000);
    expect(connections).toHaveLength(1);
    changed.resolve(has);
    await jest.advanceTimersByTimeAsync(0);
    expect(said).toEqual(told);
    expect(connections).toHaveLength(attempts);
  });

  test("Nothing is told or attempted after a stop by who hears of the end", async () => {
    const stopped = Promise.withResolvers<void>();
    mayReturn.mockImplementationOnce(() => {
      stopped.resolve(reconnector.stop());
      return true;
    });
    connections[0]?.ends(new RelayError("unknown_key"));
    await stopped.promise;
    expect([said, jest.getTimerCount()]).toEqual([[], 0]);
  });

  test("Nothing is attempted after a stop, whatever has changed", async () => {
    connections[0]?.ends(new RelayError("invalid_credential"));
    await jest.advanceTimersByTimeAsync(1000);
    await reconnector.stop();
    changed.resolve(true);
    await jest.advanceTimersByTimeAsync(1000);
    expect(connections).toHaveLength(1);
  });

  test("A renewed credential is presented where the agent goes, not where it comes from", () => {
    connections[0]?.registers();
    connections[0]?.says(DRAINING);
    reconnector.registerAgain();
    jest.advanceTimersByTime(500);
    reconnector.registerAgain();
    expect(connections.map(({ registeredAgain }) => registeredAgain)).toEqual([1, 1]);
  });
});
