import { GuardedRelay } from "../../support/guarded-redis.ts";
import { AGENTS, FAULTS } from "./catalogue.ts";
import { injectAll } from "./inject.ts";
import { SingleStage } from "./support/single-stage.ts";

injectAll("faults", new SingleStage(new GuardedRelay(...AGENTS)), FAULTS);
