import { FAULTS, surviveEach } from "./inject.ts";
import { REDIS_FAULTS } from "./redis.ts";

surviveEach(FAULTS.filter((fault) => !REDIS_FAULTS.includes(fault) && !fault.isLong));
