import { afterAll, beforeAll } from "@jest/globals";

/** What test/support/relay-under-test.ts gives, on containers: the Jest config here puts this file in its place. */
export { ContainerRelay as TestRelay } from "./container-relay.ts";

const STARTS_WITHIN_MS = 90_000;

/** Leaks are not looked for: the Docker engine's client keeps connections. */
export function use<Relay extends { start(): Promise<unknown>; stop(): Promise<void> }>(relay: Relay): Relay {
  beforeAll(async () => void (await relay.start()), STARTS_WITHIN_MS);
  afterAll(() => relay.stop(), STARTS_WITHIN_MS);
  return relay;
}
