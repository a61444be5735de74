import { readFileSync } from "node:fs";

/** GET /examples/agent.mjs: the program of llms.txt, as it is run. */
export const AGENT_PROGRAM = readFileSync(new URL("worked-agent.mjs", import.meta.url), "utf8").replaceAll(
  "\r\n",
  "\n",
);
