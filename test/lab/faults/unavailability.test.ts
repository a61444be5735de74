import { expect, test } from "@jest/globals";
import { Ledger } from "../../support/ledger.ts";
import { unavailabilities } from "./support/unavailability.ts";

const accepted = (at: number) => ({ at, accepted: true, duplicate: false, deliverable: true }) as const;
const refused = (at: number, code = "unavailable") => ({ at, accepted: false, code }) as const;

test("an agent is unavailable from the first refusal of what is for it, or its own, until the next acceptance", () => {
  const ledger = new Ledger();
  const say = (from: string, to: string | undefined, ...answers: Parameters<Ledger["answered"]>[2][]) => {
    const envelope = { id: `${from} ${to}`, type: "message.send", from, to };
    for (const answer of answers) {
      ledger.sent(envelope, "one");
      ledger.answered(envelope.id, "one", answer);
    }
  };
  say("a", "b", accepted(10), refused(30), refused(500), accepted(830));
  say("b", undefined, refused(20), accepted(900));
  say("b", "c", accepted(15), refused(25, "rate_limited"), accepted(40));
  say("c", "d", refused(50));
  const agents = ["b", "c", "d"].map((id) => ({ id }));
  expect(unavailabilities(ledger.content.entries, agents)).toEqual([810]);
});
