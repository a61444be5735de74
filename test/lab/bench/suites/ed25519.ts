import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { totalCpu } from "../../accounting.ts";
import { median, type Section, shown } from "../../report.ts";
import type { Carried } from "../load/pairs.ts";
import type { Plan } from "../plan.ts";
import { startAgentRelay } from "../systems/agent-relay.ts";
import { warmPairs } from "./comparison.ts";

const WINDOW = 32;

interface RawVerify {
  readonly perSecond: number;
  readonly cpuMicros: number;
}

export async function ed25519Sections(plan: Plan): Promise<Section[]> {
  const measured: { raw: RawVerify; relay: Carried }[] = [];
  for (let round = 0; round < plan.rounds; round += 1) {
    // What the machine gives changes from second to second: the relay is held to what it gave before and after.
    const before = await measureRaw(plan);
    const relay = await measureSigned(plan);
    const both = { raw: mean(before, await measureRaw(plan)), relay };
    measured.push(both);
    plan.say(
      `ed25519, round ${round + 1}: ${shown(both.raw.perSecond)} raw, ${shown(perSecond(both.relay))} relayed/s`,
    );
  }
  const over = (figure: (both: (typeof measured)[number]) => number) => median(measured.map(figure));
  return [
    {
      title: "Ed25519",
      about:
        `Envelopes that agents signed with Ed25519, delivered as above at window ${WINDOW}, and the bare verification of ` +
        "as many bytes by libsodium, on as many threads as a pod has, with the machine to itself, before it and after it.",
      head: ["", "a second", "µs of CPU"],
      rows: [
        ["verified only", shown(over(({ raw }) => raw.perSecond)), shown(over(({ raw }) => raw.cpuMicros))],
        [
          "delivered",
          shown(over(({ relay }) => perSecond(relay))),
          shown(over(({ relay }) => totalCpu(relay) / relay.delivered)),
        ],
      ],
      aims: [
        {
          name: "Ed25519 envelopes a second to libsodium's verifications alone",
          value: over(({ raw, relay }) => perSecond(relay) / raw.perSecond),
          least: 0.6,
        },
        {
          name: "CPU of libsodium's verification to an Ed25519 envelope's",
          value: over(({ raw, relay }) => (raw.cpuMicros * relay.delivered) / totalCpu(relay)),
          least: 0.7,
        },
      ],
      data: measured,
    },
  ];
}

function mean(one: RawVerify, other: RawVerify): RawVerify {
  return {
    perSecond: (one.perSecond + other.perSecond) / 2,
    cpuMicros: (one.cpuMicros + other.cpuMicros) / 2,
  };
}

function perSecond({ delivered, seconds }: Carried): number {
  return delivered / seconds;
}

async function measureRaw({ measureMs }: Plan): Promise<RawVerify> {
  const program = fileURLToPath(new URL("../peers/raw-verify.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, String(measureMs)]);
  return JSON.parse(stdout);
}

async function measureSigned(plan: Plan): Promise<Carried> {
  const { warmUpMs, measureMs, ours } = plan;
  await using under = await startAgentRelay(ours, "ed25519");
  await using generator = await warmPairs(under, plan, WINDOW);
  return await generator.press({ window: WINDOW, warmUpMs, measureMs, pids: under.pids });
}
