import { surviveEach } from "./inject.ts";
import { REDIS_FAULTS } from "./redis.ts";

surviveEach(REDIS_FAULTS);
