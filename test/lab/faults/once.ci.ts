import { FAULTS } from "./catalogue.ts";
import { REDIS_FAULTS } from "./redis.ts";
import { surviveEach } from "./support/survive-each.ts";

surviveEach(FAULTS.filter((fault) => !REDIS_FAULTS.includes(fault) && !fault.isLong));
