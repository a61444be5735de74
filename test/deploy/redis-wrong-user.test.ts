import { expect, test } from "@jest/globals";
import { GuardedRelay } from "../support/guarded-redis.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, use } from "../support/use-relay.ts";

const relay = use(new GuardedRelay("alice"));
const http = new HttpClient();
/** There is a window, and so something to report. */
const gateway = given(() => relay.startGateway());

test.each(["gateway", "ws-connector", "window-reset"] as const)(
  "ops-reporting that is given the Redis user %s is not ready, and says why",
  async (user) => {
    expect((await http.get(`${gateway.url}/ready`)).status).toBe(200);
    const reporting = await relay.startOpsReporting({ REDIS_URL: relay.redis.urlFor(user) });
    await until("it is known", async () => (await http.get(`${reporting.url}/ready`)).body.reason === "noperm");
    expect(await http.get(`${reporting.url}/ready`)).toMatchObject({ status: 503, body: { code: "not_ready" } });
    await reporting.stop();
  },
);
