import { REDIS_FAULTS } from "./support/redis-faults.ts";
import { surviveEach } from "./support/survive-each.ts";

surviveEach(REDIS_FAULTS);
