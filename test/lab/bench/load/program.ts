import { takeOrders } from "../../ordered-process.ts";
import { type Beat, Crowd } from "./crowd.ts";
import type { Dialect, Speech } from "./dialects.ts";
import { type AgentRelayDialect, agentRelay, BARE, BARE_ACKS, NATS, SOCKET_IO } from "./dialects.ts";
import { type Posts, post } from "./http.ts";
import { type Pace, pace } from "./pace.ts";
import { Pairs, type Press, press } from "./pairs.ts";

/** The load generator: a process of its own, which does one order after the other. */

/** What it can be told to do; the names are those of the functions. */
export type Order =
  | { readonly order: "speak"; readonly speech: Speech }
  | { readonly order: "pair"; readonly ports: readonly number[]; readonly targets: readonly string[] }
  | ({ readonly order: "press" } & Press)
  | ({ readonly order: "pace" } & Pace)
  | {
      readonly order: "gather";
      readonly ports: readonly number[];
      readonly connections: number;
      readonly agentsEach: number;
    }
  | ({ readonly order: "beat" } & Beat)
  | ({ readonly order: "post" } & Posts);

const pairs = new Pairs();
const crowd = new Crowd();
let dialect: Dialect = BARE;

takeOrders(carryOut);

async function carryOut(order: Order): Promise<unknown> {
  switch (order.order) {
    case "speak":
      dialect = dialectOf(order.speech);
      return undefined;
    case "pair":
      return await pairs.connect(dialect, order.ports, order.targets);
    case "press":
      return await press(pairs, order);
    case "pace":
      return await pace(pairs, order);
    case "gather":
      return await crowd.add(dialect, order.ports, order);
    case "beat":
      return await crowd.beat(dialect as AgentRelayDialect, order);
    case "post":
      return await post(order);
  }
}

function dialectOf(speech: Speech): Dialect {
  if (speech.dialect === "agent-relay") return agentRelay(speech);
  return { bare: BARE, "bare-acks": BARE_ACKS, "socket.io": SOCKET_IO, nats: NATS }[speech.dialect];
}
