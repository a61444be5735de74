import { connect, isIP, type NetConnectOpts } from "node:net";
import { connect as connectByTls } from "node:tls";

/** Silence after which a Redis is taken for one that hangs. */
const SILENCE_MS = 5000;

/** Where a Redis listens; by TLS, where there is a name that its certificate has to hold. */
export type RedisAddress = NetConnectOpts & { readonly certifiedName?: string };

/**
 * Says something to a Redis on a connection of its own, and resolves with all that it answers.
 * @param lines commands in the inline form, one after the other.
 * @throws {Error} when nobody listens there, or when it hangs.
 */
export async function sayTo(address: RedisAddress, ...lines: readonly string[]): Promise<string> {
  const socket = open(address);
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
  address: RedisAddress,
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

function open({ certifiedName, ...address }: RedisAddress) {
  if (certifiedName === undefined) return connect(address);
  return connectByTls({ ...address, ...(isIP(certifiedName) === 0 && { servername: certifiedName }) });
}
