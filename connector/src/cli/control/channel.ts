import { hkdfSync } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { decodeBase64url } from "../../base64url.ts";
import type { AgentKey } from "../../types.ts";
import type { SigningAgent } from "../key-file.ts";

/**
 * The channel over a control socket: TLS under a key that both ends derive from the agent's private key, which each so proves to
 * the other to have. Else a program of the same user that reaches the folder of the sockets, but not the key file, could be the
 * agent to the process that holds its connection, or that process to the agent's commands.
 * Source: docs/security.md#the-control-socket.
 */

/** Of the lines: processes of other versions do not find one another. */
export const CONTROL_VERSION = 3;

/** Pre-shared keys (RFC 4279, RFC 7905) and nothing else: from TLS 1.3 on a certificate could stand in for the key. */
const SUITE = { ciphers: "ECDHE-PSK-CHACHA20-POLY1305", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;
/** Whoever has the key proves it at once; others keep no connection for longer. */
const HANDSHAKE_MS = 5000;
const KEY_BYTES = 32;

/** What a channel is opened under: of one agent at one relay. */
interface ChannelKey {
  readonly psk: Buffer;
  /** Names the key in clear, and tells nothing about it. */
  readonly identity: string;
}

/** Opens the channel over the socket at a path. Rejects as `connect` does, and when the other end has not the key. */
export async function dialChannel(
  path: string,
  signing: SigningAgent,
  websocketUrl: string,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const key = channelKey(await presentKeyOf(signing), signing.agent, websocketUrl);
  const channel = connect({ path, ...SUITE, pskCallback: () => key, checkServerIdentity: () => undefined });
  channel.on("error", () => {});
  try {
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(HANDSHAKE_MS)]);
    await once(channel, "secureConnect", { signal: inTime });
    return channel;
  } catch (error) {
    channel.destroy();
    throw error;
  }
}

/**
 * @param serve called with each channel, once its client has proven to have the key that this process runs under, or the one that
 * its key file has by now.
 * @returns what takes a client's socket.
 */
export function channelOpener(
  signing: SigningAgent,
  websocketUrl: string,
  serve: (channel: TLSSocket) => void,
): (socket: Socket) => Promise<void> {
  let keys: ChannelKey[] = [];
  const pskCallback = (_: TLSSocket, named: string) => keys.find(({ identity }) => identity === named)?.psk ?? null;
  const server = createServer({ ...SUITE, handshakeTimeout: HANDSHAKE_MS, pskCallback }, serve);
  server.on("tlsClientError", (_, channel) => channel.destroy());
  return async (socket) => {
    const own = [signing.key, await presentKeyOf(signing)];
    keys = own.map((key) => channelKey(key, signing.agent, websocketUrl));
    server.emit("connection", socket);
  };
}

function channelKey(key: AgentKey, agent: string, websocketUrl: string): ChannelKey {
  const secret = decodeBase64url((key.alg === "ed25519" ? key.privateKey : key.secret) as string) ?? new Uint8Array();
  const purpose = `agent-relay control socket ${CONTROL_VERSION}\n${agent}\n${websocketUrl}`;
  const derived = Buffer.from(hkdfSync("sha256", secret, "", purpose, 2 * KEY_BYTES));
  return { psk: derived.subarray(0, KEY_BYTES), identity: derived.subarray(KEY_BYTES).toString("hex") };
}

/** A credential may have come with another key since the start. A file that cannot be read now leaves the former. */
async function presentKeyOf({ key, credential }: SigningAgent): Promise<AgentKey> {
  const present = await credential?.().catch(() => undefined);
  return present?.key ?? key;
}
