import { freePort } from "../../support/free-port.ts";
import type { Pod } from "../../support/relay.ts";
import { ContainerRelay } from "./container-relay.ts";

/** What test/conformance/relay-under-test.ts gives, on containers: the Jest config here puts this file in its place. */

export { ContainerRelay as TestRelay };

/** The three services behind the edge, two connectors among them. */
export async function serveWhole(relay: ContainerRelay): Promise<Pod> {
  const port = await freePort();
  const addresses = {
    RELAY_BASE_URL: `http://127.0.0.1:${port}`,
    RELAY_WS_URL: `ws://127.0.0.1:${port}`,
    RELAY_TRUSTED_PROXY_HOPS: "1",
  };
  await Promise.all([
    relay.startGateway(addresses),
    relay.startWsConnectors(addresses),
    relay.startOpsReporting(addresses),
  ]);
  return await relay.startEdge(port);
}
