import { hkdfSync } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { connect, createSecureContext, createServer, type TLSSocket } from "node:tls";
import { decodeBase64url } from "../../base64url.ts";
import { RelayError } from "../../errors.ts";
import type { AgentKey } from "../../types.ts";
import type { SigningAgent } from "../key-file.ts";
import type { ControlPlace } from "./place.ts";

/**
 * The channel over a control socket: TLS under a key that both ends derive from the agent's private key, which each so proves to
 * the other to have. Else a program of the same user that reaches the folder of the sockets, but not the key file, could be the
 * agent to the process that holds its connection, or that process to the agent's commands.
 * Source: docs/security.md#the-control-socket.
 */

/** Of the lines: processes of other versions do not find one another. */
export const CONTROL_VERSION = 4;
/** Whoever has the key proves it at once. */
export const HANDSHAKE_MS = 5000;

/**
 * Ephemeral keys under pre-shared ones (RFC 5489, RFC 7905) and nothing else: from TLS 1.3 on a certificate could stand in for the
 * key. The second is for builds of OpenSSL without ChaCha20, such as those for FIPS 140.
 */
const SUITES = {
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305:ECDHE-PSK-AES256-CBC-SHA384",
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
} as const;
const KEY_BYTES = 32;

type Keyed = Pick<ControlPlace, "signing" | "websocketUrl" | "self">;
/** Rejects as `connect` does, and when the other end has not the key. The signal ends the attempt. */
export type Dial = (path: string, signal: AbortSignal) => Promise<TLSSocket>;

/** What a channel is opened under: of one agent at one relay. */
interface ChannelKey {
  readonly psk: Buffer;
  /** Names the key in clear, before the name of the process, and tells nothing about it. */
  readonly identity: string;
}

/** Whether this build of OpenSSL has a suite for the channel. Without one nothing can be shared, which is warned of. */
export function canOpenChannels(warn: ControlPlace["warn"]): boolean {
  try {
    createSecureContext(SUITES);
    return true;
  } catch {
    const text = "This Node has no cipher suite for the control socket: processes of the agent share no connection.";
    warn(text, `It needs an OpenSSL that has one of ${SUITES.ciphers.replace(":", " and ")}.`);
    return false;
  }
}

/** Opens channels under the key that the agent has now. */
export async function channelDialer({ signing, websocketUrl, self }: Keyed): Promise<Dial> {
  const { psk, identity } = channelKey(await presentKeyOf(signing), signing.agent, websocketUrl);
  const key = { psk, identity: `${identity}.${self}` };
  const secureContext = createSecureContext(SUITES);
  return async (path, signal) => {
    signal.throwIfAborted();
    const channel = connect({ path, secureContext, pskCallback: () => key, checkServerIdentity: () => undefined });
    channel.on("error", () => {});
    try {
      await once(channel, "secureConnect", { signal });
      return channel;
    } catch (error) {
      channel.destroy();
      throw error;
    }
  };
}

/**
 * The other end of a channel.
 * @returns undefined when the socket is closed before its client has proven to have the key that this process runs under, or the
 * one that its key file has by now, and when that client is this process.
 */
export async function acceptedChannel(
  socket: Socket,
  { signing, websocketUrl, self }: Keyed,
): Promise<TLSSocket | undefined> {
  // Nothing is made, nor read, for one that says nothing.
  await new Promise((resolve) => socket.once("readable", resolve).once("close", resolve));
  const own = socket.destroyed ? [] : [signing.key, await presentKeyOf(signing)];
  if (socket.destroyed) return undefined;
  const keys = own.map((key) => channelKey(key, signing.agent, websocketUrl));
  const accepted = Promise.withResolvers<TLSSocket | undefined>();
  const pskCallback = (_: TLSSocket, named: string) => {
    const [key, client] = named.split(".");
    return (client !== self && keys.find(({ identity }) => identity === key)?.psk) || null;
  };
  // One for each: no other way tells which socket a channel is over.
  const server = createServer({ ...SUITES, pskCallback }, (channel) => accepted.resolve(channel.on("error", () => {})));
  socket.once("close", () => accepted.resolve(undefined));
  server.emit("connection", socket);
  return await accepted.promise;
}

function channelKey(key: AgentKey, agent: string, websocketUrl: string): ChannelKey {
  const secret = decodeBase64url((key.alg === "ed25519" ? key.privateKey : key.secret) as string);
  // Anybody could derive the same from none.
  if (secret === undefined) throw new RelayError("invalid_key");
  const purpose = `agent-relay control socket ${CONTROL_VERSION}\n${agent}\n${websocketUrl}`;
  const derived = Buffer.from(hkdfSync("sha256", secret, "", purpose, 2 * KEY_BYTES));
  return { psk: derived.subarray(0, KEY_BYTES), identity: derived.subarray(KEY_BYTES).toString("hex") };
}

/** A credential may have come with another key since the start. A file that cannot be read now leaves the former. */
async function presentKeyOf({ key, credential }: SigningAgent): Promise<AgentKey> {
  const present = await credential?.().catch(() => undefined);
  return present?.key ?? key;
}
