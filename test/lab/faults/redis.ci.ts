import { REDIS_FAULTS } from "./redis.ts";
import { surviveEach } from "./support/survive-each.ts";

surviveEach(REDIS_FAULTS);
