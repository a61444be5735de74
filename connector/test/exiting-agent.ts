import { Connector } from "../src/index.ts";
import type { AgentKey } from "../src/options.ts";

/** The program of an agent that starts, closes and has nothing else to do. */

const [url = "", agent = "", key = ""] = process.argv.slice(2);
const connector = new Connector({ url, agent, key: JSON.parse(key) as AgentKey, takeOver: true });
await connector.start();
await connector.close();
