/** Names of this machine: where clients reach the relay under one, they reach it under all. */
const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

/**
 * The names of this relay, with a port that is not the default: what a register with a credential may say that it is meant
 * for. Never taken from a request, where anybody can write anything. Source: docs/protocol.md#credentials.
 */
export function relayHosts({ baseUrl, wsUrl, publicHosts = [] }: RelayAddresses): ReadonlySet<string> {
  const hosts = [
    ...[baseUrl, wsUrl].map((url) => new URL(url)),
    ...publicHosts.map((host) => new URL(`wss://${host}`)),
  ];
  return new Set(hosts.flatMap(namesOf));
}

/** As the settings say them. */
interface RelayAddresses {
  readonly baseUrl: string;
  readonly wsUrl: string;
  readonly publicHosts?: readonly string[] | undefined;
}

function namesOf({ host, hostname, port }: URL): string[] {
  if (!LOOPBACK.includes(hostname)) return [host];
  return LOOPBACK.map((name) => (port === "" ? name : `${name}:${port}`));
}
