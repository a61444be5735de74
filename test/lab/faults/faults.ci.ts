import { FAULTS, surviveEach } from "./inject.ts";

surviveEach(FAULTS.filter((fault) => !fault.isLong));
