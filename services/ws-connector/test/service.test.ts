import { afterAll, afterEach, beforeAll, expect, jest, test } from "@jest/globals";
import { watchLeaks } from "../../../test/support/leaks.ts";
import { TestRelay } from "../../../test/support/relay.ts";
import { createWsConnector } from "../src/service.ts";
import { readWsConnectorSettings } from "../src/settings.ts";

const relay = new TestRelay();
const noLeaks = watchLeaks();

beforeAll(async () => {
  await relay.start();
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(async () => {
  await relay.stop();
  await noLeaks();
});

test("A pod that is stopped while it starts leaves no timer and no socket behind", async () => {
  const settings = readWsConnectorSettings(relay.environmentOf("ws-connector"));
  const pod = createWsConnector(settings, { logger: relay.logger("ws-connector") });
  const setInterval = jest.spyOn(globalThis, "setInterval");
  const started = pod.start();
  await pod.stop();
  await started;
  expect(setInterval).not.toHaveBeenCalled();
});
