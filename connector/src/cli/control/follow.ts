import type { Connector } from "../../connector.ts";
import { deliveryMembers } from "../delivery-line.ts";
import { jsonLine } from "../output.ts";
import { isOfSessions, noticeLine, stateLine } from "./follow-lines.ts";
import { onState } from "./told-states.ts";

/** Writes, for who follows, what comes over the connection from now on. @returns a function that ends it. */
export function tellFollower(connector: Connector, write: (line: string) => void): () => void {
  const ends = [
    onState(connector, (state) => write(stateLine(state))),
    connector.on("delivery", (delivery) => write(jsonLine({ event: "delivery", ...deliveryMembers(delivery) }))),
    connector.on("notice", (notice) => isOfSessions(notice) && write(noticeLine(notice))),
  ];
  return () => {
    for (const end of ends) end();
  };
}
