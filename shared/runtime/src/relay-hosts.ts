/** Names of this machine: where clients reach the relay under one, they reach it under all. */
const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

/**
 * The names of this relay, with a port that is not the default: what a register with a credential may say that it is meant
 * for. Never taken from a request, where anybody can write anything. Names of this machine are any relay's, so they count
 * only where its operator gave it no other, or listed them. Source: docs/protocol.md#credentials.
 */
export function relayHosts({ baseUrl, wsUrl, publicHosts = [] }: RelayAddresses): ReadonlySet<string> {
  const addresses = [baseUrl, wsUrl].map((url) => new URL(url));
  const named = [
    ...addresses.filter(({ hostname }) => !LOOPBACK.includes(hostname)),
    ...publicHosts.map((host) => new URL(`wss://${host}`)),
  ];
  return new Set(named.length > 0 ? named.map(({ host }) => host) : addresses.flatMap(namesOfMachine));
}

/** The one of them that documents tell to put into `payload.relay`: that of the websocket's address, where it counts. */
export function relayName(addresses: RelayAddresses): string {
  const hosts = relayHosts(addresses);
  const { host } = new URL(addresses.wsUrl);
  const [first = host] = hosts;
  return hosts.has(host) ? host : first;
}

/** As the settings say them. */
interface RelayAddresses {
  readonly baseUrl: string;
  readonly wsUrl: string;
  readonly publicHosts?: readonly string[] | undefined;
}

function namesOfMachine({ port }: URL): string[] {
  return LOOPBACK.map((name) => (port === "" ? name : `${name}:${port}`));
}
