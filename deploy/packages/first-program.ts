import { RELAY_ADDRESS } from "relay-protocol/contract/packages.ts";

/** Of the manuals, whose programs are for a relay on this machine. */
const LOCAL_RELAY = "http://127.0.0.1:8080";

/** A program of a manual, by the info string of its block, for whichever relay hands it out. */
export function firstProgramIn(manual: string, info: string): string {
  const [, program] = new RegExp(`^\`\`\`${info}\n([^]*?)^\`\`\``, "m").exec(manual) ?? [];
  if (program === undefined) throw new Error(`The manual has no block: ${info}`);
  return program.replaceAll(LOCAL_RELAY, RELAY_ADDRESS);
}
