import { connect, type NetConnectOpts } from "node:net";

/** Silence after which a Redis is taken for one that hangs. */
const SILENCE_MS = 5000;

/**
 * Says something to a Redis on a connection of its own, and resolves with all that it answers.
 * @param lines commands in the inline form, one after the other.
 * @throws {Error} when nobody listens there, or when it hangs.
 */
export async function sayTo(address: NetConnectOpts, ...lines: readonly string[]): Promise<string> {
  const socket = connect(address);
  socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error("Redis does not answer.")));
  try {
    socket.write([...lines, "QUIT", ""].join("\r\n"));
    let said = "";
    for await (const chunk of socket) said += chunk;
    return said;
  } finally {
    socket.destroy();
  }
}

/** Answers to commands in the inline form, as they come. @throws {Error} when one is refused. */
export async function askRedis(
  address: NetConnectOpts,
  login: readonly string[],
  commands: readonly string[],
): Promise<string> {
  const said = await sayTo(address, ...login, ...commands);
  const [refusal] = /^-.*/m.exec(said) ?? [];
  if (refusal !== undefined) throw new Error(`Redis refused one of ${commands.join("; ")}: ${refusal}`);
  return said;
}

/** One PING. */
export async function answersPing(address: NetConnectOpts): Promise<boolean> {
  return (await sayTo(address, "PING").catch(() => "")).startsWith("+PONG");
}
