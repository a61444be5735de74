import { FAULTS } from "./support/catalogue.ts";
import { REDIS_FAULTS } from "./support/redis-faults.ts";
import { surviveEach } from "./support/survive-each.ts";

surviveEach(FAULTS.filter((fault) => !REDIS_FAULTS.includes(fault) && !fault.isLong));
