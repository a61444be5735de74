import { GuardedRelay } from "../../support/guarded-redis.ts";
import { AGENTS, FAULTS } from "./support/catalogue.ts";
import { injectAll } from "./support/inject-all.ts";
import { SingleStage } from "./support/single-stage.ts";

injectAll("faults", new SingleStage(new GuardedRelay(...AGENTS)), FAULTS);
