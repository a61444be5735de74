import { Connector, type ConnectorOptions, type Delivery } from "agent-relay-connector";

/** An agent that adds numbers for whoever asks it to. */
export async function startAdder(options: ConnectorOptions): Promise<Connector> {
  const connector = new Connector(options);
  connector.on("delivery", (delivery) => void answer(delivery).catch(console.error));
  await connector.start();
  return connector;
}

async function answer({ type, payload, reply }: Delivery): Promise<void> {
  if (type !== "message.add") return;
  const { numbers } = payload as { numbers?: unknown };
  if (Array.isArray(numbers) && numbers.every((number) => typeof number === "number")) {
    await reply({ sum: numbers.reduce((sum, number) => sum + number, 0) });
  } else {
    await reply({ problem: "numbers must be an array of numbers" });
  }
}
