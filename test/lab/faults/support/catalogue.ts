import { CLIENT_FAULTS } from "./client-faults.ts";
import { CLOCK_FAULTS } from "./clock-faults.ts";
import type { Fault } from "./fault.ts";
import { GATEWAY_FAULT } from "./gateway-fault.ts";
import { POD_FAULTS } from "./pod-faults.ts";
import { REDIS_FAULTS } from "./redis-faults.ts";

/** Every fault that the relay is held against; a line of the table each. */
export const FAULTS: readonly Fault[] = [
  ...REDIS_FAULTS,
  ...POD_FAULTS,
  GATEWAY_FAULT,
  ...CLOCK_FAULTS,
  ...CLIENT_FAULTS,
];

/** Names of agents: more than one on each of two connectors, of both algorithms. */
export const AGENTS = ["ada", "bea-hmac", "cid-hmac", "dan-hmac", "eve-hmac", "flo"];
