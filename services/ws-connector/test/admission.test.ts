import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Admission, type AdmissionLimits, type Guest } from "../src/admission.ts";

const NO_LIMITS: AdmissionLimits = { maxConnections: 1000, connectionsPerAddress: 0, unregisteredConnections: 0 };
const MINUTE_MS = 60_000;

let admission: Admission;
let struck: string[];
let now: number;

beforeEach(() => {
  struck = [];
  now = 1_000_000;
});

function limit(limits: Partial<AdmissionLimits>): void {
  admission = new Admission({ ...NO_LIMITS, ...limits }, (name) => struck.push(name));
}

function knock(address: string): string {
  const refusal = admission.refusalOf(address, now);
  return refusal === null ? "welcome" : `${refusal.code} ${refusal.retryAfterMs}`;
}

function enter(address: string): Guest & { wasDismissed: boolean } {
  const guest = {
    caller: admission.callerOf(address),
    wasDismissed: false,
    close() {
      guest.wasDismissed = true;
      admission.settled(guest);
    },
  };
  admission.opened(guest);
  return guest;
}

function register<Entered extends Guest>(guest: Entered): Entered {
  admission.settled(guest);
  return guest;
}

const leave = (guest: Guest) => admission.closed(guest);

test("A full pod is over capacity for everybody until a connection ends", () => {
  limit({ maxConnections: 2 });
  const first = enter("203.0.113.1");
  enter("203.0.113.2");
  expect(knock("203.0.113.3")).toBe("over_capacity 5000");
  expect(struck).toEqual(["pod_connections"]);
  leave(first);
  expect(knock("203.0.113.3")).toBe("welcome");
});

describe("An address", () => {
  test("has so many connections open at once; another address is not concerned", () => {
    limit({ connectionsPerAddress: 2 });
    const first = register(enter("203.0.113.1"));
    register(enter("203.0.113.1"));
    expect(knock("203.0.113.1")).toBe("rate_limited 5000");
    expect(knock("203.0.113.2")).toBe("welcome");
    expect(struck).toEqual(["address_connections"]);
    leave(first);
    expect(knock("203.0.113.1")).toBe("welcome");
  });

  test("has half of them without a register, rounded up", () => {
    limit({ connectionsPerAddress: 5 });
    const first = enter("203.0.113.1");
    enter("203.0.113.1");
    expect(knock("203.0.113.1")).toBe("welcome");
    enter("203.0.113.1");
    expect(knock("203.0.113.1")).toBe("rate_limited 5000");
    expect(struck).toEqual(["address_unregistered"]);
    register(first);
    expect(knock("203.0.113.1")).toBe("welcome");
  });

  test("opens twice as many in a minute, and is told when the next one begins", () => {
    limit({ connectionsPerAddress: 2 });
    expect(knock("203.0.113.1")).toBe("welcome");
    const staying = register(enter("203.0.113.1"));
    for (let n = 0; n < 3; n += 1) leave(enter("203.0.113.1"));
    now += 20_000;
    expect(knock("203.0.113.1")).toBe("rate_limited 40000");
    expect(struck).toEqual(["address_opens"]);
    now += 40_000;
    expect(knock("203.0.113.1")).toBe("welcome");
    expect(staying.caller).toMatchObject({ open: 1, opened: 0 });
  });

  test("is its /64 when it is of IPv6", () => {
    limit({ connectionsPerAddress: 1 });
    enter("2001:db8:0:7::1");
    expect(knock("2001:db8:0:7:a:b:c:d")).toBe("rate_limited 5000");
    expect(knock("2001:db8:0:8::1")).toBe("welcome");
  });

  test("is counted once for a connection that registers, closes and is gone", () => {
    limit({ connectionsPerAddress: 2 });
    const guest = register(register(enter("203.0.113.1")));
    leave(guest);
    expect(guest.caller).toMatchObject({ open: 0, unregistered: 0 });
  });

  test("has no limit when that is 0, and is then not even told from others", () => {
    limit({ connectionsPerAddress: 0 });
    for (let n = 0; n < 500; n += 1) enter(`203.0.113.${n % 250}`);
    expect(knock("203.0.113.1")).toBe("welcome");
    expect(admission.callerCount).toBe(1);
  });
});

describe("Connections that have not registered", () => {
  test("give way, the oldest first, when there are too many; nobody is refused for them", () => {
    limit({ unregisteredConnections: 2 });
    const guests = [enter("203.0.113.1"), enter("203.0.113.2"), enter("203.0.113.3"), enter("203.0.113.4")];
    expect(guests.map(({ wasDismissed }) => wasDismissed)).toEqual([true, true, false, false]);
    expect(struck).toEqual(["pod_unregistered", "pod_unregistered"]);
    expect(knock("203.0.113.5")).toBe("welcome");
  });

  test("do not give way once they have registered, however old they are", () => {
    limit({ unregisteredConnections: 2 });
    const old = register(enter("203.0.113.1"));
    for (let n = 0; n < 10; n += 1) enter("203.0.113.2");
    expect(old.wasDismissed).toBe(false);
  });
});

describe("What is remembered of addresses", () => {
  test("goes within the next minute once their last connection is closed", () => {
    limit({ connectionsPerAddress: 10 });
    admission.forget(now);
    const staying = enter("203.0.113.1");
    leave(enter("203.0.113.2"));
    expect(admission.callerCount).toBe(2);
    admission.forget(now + MINUTE_MS);
    expect(admission.callerCount).toBe(1);
    leave(staying);
    admission.forget(now + 2 * MINUTE_MS);
    expect(admission.callerCount).toBe(0);
  });

  test("is bounded within the minute too, from however many addresses connections come and go", () => {
    limit({ connectionsPerAddress: 10, maxConnections: 20 });
    const staying = enter("198.51.100.1");
    for (let n = 0; n < 1000; n += 1) leave(enter(`2001:db8:0:${n.toString(16)}::1`));
    expect(admission.callerCount).toBeLessThanOrEqual(40);
    expect(staying.caller.open).toBe(1);
    leave(staying);
  });

  test("is a hash under a key that no other process has", () => {
    const set = jest.spyOn(Map.prototype, "set");
    const remembered = ["one process", "another process"].map(() => {
      set.mockClear();
      limit({ connectionsPerAddress: 10 });
      enter("203.0.113.1");
      return JSON.stringify(set.mock.calls);
    });
    set.mockRestore();
    expect(remembered[0]).toMatch(/^\[\["[\w-]{22}",\{"open":1/);
    expect(remembered[0]).not.toBe(remembered[1]);
  });
});
