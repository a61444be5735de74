import { createRelay } from "../../deploy/local/relay.ts";
import { freePort } from "./free-port.ts";
import type { Pod, TestRelay } from "./relay.ts";

/** The three services behind one address, as `npm start` serves them. The caller stops it before the relay. */
export async function serveWhole(relay: TestRelay, overrides: Record<string, string> = {}): Promise<Pod> {
  const port = await freePort();
  const { service } = createRelay(
    { ...relay.environment, PORT: String(port), LOG_LEVEL: "silent", ...overrides },
    () => {},
  );
  await service.start();
  return { port, url: `http://127.0.0.1:${port}`, stop: () => service.stop() };
}
