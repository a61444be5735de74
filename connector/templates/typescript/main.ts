import { Connector, RelayError } from "agent-relay-connector";
import { readKeyFile } from "agent-relay-connector/key-file";
import { serve } from "./agent.ts";

const url = process.env.RELAY_URL || "{{url}}";
const keyFile = process.env.RELAY_KEY_FILE || "{{key}}";

try {
  const agent = new Connector({ url, ...(await readKeyFile(keyFile)) });
  agent.on("state", ({ status }) => console.log(`${agent.agent} is ${status}`));
  agent.on("error", ({ message, hint }) => console.error(`${message} ${hint}`));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => agent.close());
  void agent.start();
  await serve(agent);
} catch (error) {
  console.error(error instanceof RelayError ? `${error.message} ${error.hint}` : error);
  process.exitCode = 1;
}
