import { rename } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { HttpClient } from "../support/http.ts";
import { scrape } from "../support/scrape.ts";
import { Services } from "../support/services.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const relay = useRelay("alice");
const http = new HttpClient();
const services = given(() => Services.start((name, settings) => relay.startService(name, settings)));
const READERS = ["gateway", "ws-connector"] as const;

/** What each service says of its keys file: by its metric, and by /ready, whose status says whether it stays in. */
const said = async () =>
  await Promise.all(
    READERS.map(async (name) => {
      const metrics = await scrape(services.metricsOf(name));
      const { status, body } = await http.get(`${services.pod(name).url}/ready`);
      return [metrics.value("relay_keys_file_valid"), status, body.degraded];
    }),
  );
const areSaid = async (valid: number) => (await said()).every(([value]) => value === valid);

test("Services that cannot use their keys file stay ready, say so until they can, and know the keys that they had", async () => {
  await until("all are ready", async () => (await said()).every(([, status]) => status === 200));
  expect(await said()).toEqual(READERS.map(() => [1, 200, undefined]));

  await rename(relay.keysFile, `${relay.keysFile}.away`);
  await until("each sees that it is gone", () => areSaid(0));
  expect(await said()).toEqual(READERS.map(() => [0, 200, ["keys_file"]]));
  await relay.online(services.pod("ws-connector"), "alice");
  const reports = await scrape(services.metricsOf("ops-reporting"));
  expect(reports.value("relay_keys_file_valid")).toBeUndefined();

  await rename(`${relay.keysFile}.away`, relay.keysFile);
  await until("each sees that it is back", () => areSaid(1));
  expect(await said()).toEqual(READERS.map(() => [1, 200, undefined]));
});
