import { FAULTS, injectAll, singleFleet } from "./inject.ts";

injectAll("faults", singleFleet(), FAULTS);
