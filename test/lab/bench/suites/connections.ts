import { maxOpenFiles } from "../../accounting.ts";

/** What a process has open beside the connections. */
const SPARE_FILES = 100;

/** As many connections as are wanted, beside others, or as one process may have open. */
export function connectionsWithin(wanted: number, others = 0): number {
  return Math.min(wanted, maxOpenFiles() - others - SPARE_FILES);
}

/** Why there are fewer than wanted, where there are. */
export function limitText(connections: number, wanted: number): string {
  return connections < wanted ? ` Only so many, since \`ulimit -n\` is ${maxOpenFiles()}.` : "";
}
