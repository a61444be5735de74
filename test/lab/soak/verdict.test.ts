import { describe, expect, test } from "@jest/globals";
import { isMet } from "../report.ts";
import { kindOf, ROLES, type Sample } from "./fleet.ts";
import { guardedShare, type Outcome, sectionsOf, thirds } from "./verdict.ts";

const MINUTE_MS = 60_000;
const OUTCOME: Outcome = {
  ...{ sent: 300, acked: 300, promised: 300, delivered: 300, refused: 0, refusals: {}, violations: [], calls: {} },
  ...{ failedCalls: 0, unavailableShare: 0, moves: 1, rolls: 1, unexpectedEnds: [], errorLines: [] },
  ...{ agentsOnline: 10, seconds: 1 },
};

/** Twelve minutes, a sample each; 100 envelopes a minute, which the guard holds for six. */
function samples(bytes: (minute: number) => number, guarded = (minute: number) => 100 * Math.min(minute, 6)): Sample[] {
  return Array.from({ length: 12 }, (_, n) => {
    const minute = n + 1;
    const processes = Object.fromEntries(ROLES.map((role) => [role, { heap: bytes(minute), resident: bytes(minute) }]));
    const seen = { keys: 1, bytes: 80 * guarded(minute) };
    const redis = {
      ...{ used: 1_000_000 + seen.bytes, keys: 1, families: { seen }, guarded: guarded(minute) },
      ...{ accepted: 100 * minute, published: 100 * minute },
    };
    return { ms: minute * MINUTE_MS, processes, redis, redisResident: 1, agentsOnline: 10 };
  });
}

function unmet(taken: readonly Sample[], outcome: Partial<Outcome> = {}): string[] {
  const plan = { minutes: 12, agents: 10, say: () => {} };
  const aims = sectionsOf(plan, taken, { ...OUTCOME, ...outcome }).flatMap((section) => section.aims);
  return aims.filter((aim) => !isMet(aim)).map(({ name }) => name);
}

describe("A soak", () => {
  test("is content with what is level, and with what the guard has to hold", () => {
    expect(unmet(samples(() => 20_000_000))).toEqual([]);
  });

  test("sees what grows from the second third of the run to the last", () => {
    const growing = samples((minute) => 20_000_000 + 1_000_000 * minute);
    expect(thirds(growing, ({ processes }) => processes.gateway?.heap)).toEqual({
      second: 26_500_000,
      last: 30_500_000,
    });
    expect(unmet(growing)).toHaveLength(2 * ROLES.length);
  });

  test("sees a guard that does not forget, and one that takes more than its model", () => {
    const forgetting = samples(() => 1);
    const hoarding = samples(
      () => 1,
      (minute) => 100 * minute,
    );
    expect([guardedShare(forgetting), guardedShare(hoarding)]).toEqual([1, 12 / 7]);
    expect(unmet(hoarding)).toContain("envelopes in the guard to those accepted while it keeps them");
  });

  test("is not content with anything lost, ended, logged as an error, answered otherwise than due, or left undone", () => {
    const outcomes: Partial<Outcome>[] = [
      { violations: ["promised and lost: env"] },
      { unexpectedEnds: ["gateway"] },
      { errorLines: ["{}"] },
      { failedCalls: 1 },
      { unavailableShare: 0.1 },
      { acked: 10 },
      { agentsOnline: 9 },
    ];
    for (const outcome of outcomes)
      expect(
        unmet(
          samples(() => 1),
          outcome,
        ),
      ).toHaveLength(1);
  });

  test("tells keys apart by their kind", () => {
    const keys = [
      "relay:{0qx}:seen:29",
      "relay:{0}:traffic",
      "relay:{3pk}:limit:send:x",
      "relay:{2zm}:idempotency:x",
      "x",
    ];
    expect(keys.map(kindOf)).toEqual(["seen", "traffic", "limit", "idempotency", "unknown"]);
  });
});
