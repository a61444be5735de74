import { describe, expect, test } from "@jest/globals";
import { seriesIn } from "../../../../test/support/http.ts";
import { exposition } from "../../src/metrics/metrics-server.ts";
import { KeyRefusals, ServiceMetrics } from "../../src/metrics/service-metrics.ts";

/** Series of a text by name and labels. */
function seriesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

describe("The metrics of a service", () => {
  test("show what was counted under the label values it was counted by", async () => {
    const metrics = new ServiceMetrics("gateway");
    const requests = metrics.counter("relay_http_requests_total");
    requests.add("sendMessage 202");
    requests.add("sendMessage 202");
    requests.add("none 404");
    expect(seriesOf(await exposition([metrics.registry]))).toEqual([
      'relay_http_requests_total{surface="sendMessage",status="202",service="gateway"} 2',
      'relay_http_requests_total{surface="none",status="404",service="gateway"} 1',
    ]);
  });

  test("ask a gauge anew at each scrape", async () => {
    const metrics = new ServiceMetrics("ws-connector");
    let connections = 1;
    metrics.gauge("relay_connections", () => [["", connections]]);
    expect(seriesOf(await exposition([metrics.registry]))).toEqual(['relay_connections{service="ws-connector"} 1']);
    connections = 0;
    expect(seriesOf(await exposition([metrics.registry]))).toEqual(['relay_connections{service="ws-connector"} 0']);
  });

  test("have no series of what a gauge shows no more", async () => {
    const metrics = new ServiceMetrics("gateway");
    const links = new Map([
      ["gateway@1", 1],
      ["gateway@2", 1],
    ]);
    metrics.gauge("relay_redis_up", () => links);
    expect(seriesOf(await exposition([metrics.registry]))).toHaveLength(2);
    links.delete("gateway@1");
    expect(seriesOf(await exposition([metrics.registry]))).toEqual([
      'relay_redis_up{link="gateway@2",service="gateway"} 1',
    ]);
  });

  test("have no series of a gauge without labels that has nothing to show", async () => {
    const metrics = new ServiceMetrics("gateway");
    metrics.gauge("relay_certificate_end_time_seconds", () => []);
    expect(seriesOf(await exposition([metrics.registry]))).toEqual([]);
  });

  test("tell times of 5 ms and of 450 ms from longer ones, under the label values that they were measured by", async () => {
    const metrics = new ServiceMetrics("gateway");
    const seconds = metrics.histogram("relay_http_request_seconds");
    for (const time of [0.005, 0.006, 0.45, 0.451]) seconds.observe(time, "guides");
    seconds.observe(0.001, "none");
    const text = await exposition([metrics.registry]);
    const countOf = (le: string, group: string) =>
      seriesIn(text).value("relay_http_request_seconds_bucket", { le, group });
    expect(["0.0025", "0.005", "0.25", "0.45", "+Inf"].map((le) => countOf(le, "guides"))).toEqual([0, 1, 2, 3, 4]);
    expect(countOf("0.001", "none")).toBe(1);
  });

  test("give one tally to all who count under one name", () => {
    const metrics = new ServiceMetrics("gateway");
    expect(metrics.counter("relay_refusals_total")).toBe(metrics.counter("relay_refusals_total"));
  });

  test("of several services in one process stand in one text, each name described once", async () => {
    const services = [new ServiceMetrics("gateway"), new ServiceMetrics("ops-reporting")];
    for (const metrics of services) {
      metrics.counter("relay_refusals_total").add("not_found");
      metrics.histogram("relay_redis_call_seconds").observe(0.002, "main");
    }
    const text = await exposition(services.map(({ registry }) => registry));
    expect(text.match(/^# TYPE .*$/gm)).toEqual([
      "# TYPE relay_refusals_total counter",
      "# TYPE relay_redis_call_seconds histogram",
    ]);
    expect(seriesOf(text).filter((line) => line.startsWith("relay_refusals_total"))).toEqual([
      'relay_refusals_total{code="not_found",service="gateway"} 1',
      'relay_refusals_total{code="not_found",service="ops-reporting"} 1',
    ]);
    const buckets = seriesOf(text).filter((line) => line.includes('le="0.0025"') && line.endsWith(" 1"));
    expect(buckets).toHaveLength(2);
  });
});

const MAX_NAMED = 50;

function refused(counts: readonly (readonly [string, number])[]): KeyRefusals {
  const refusals = new KeyRefusals();
  for (const [keyId, count] of counts) for (let n = 0; n < count; n += 1) refusals.add(keyId);
  return refusals;
}
const many = Array.from({ length: MAX_NAMED }, (_, n) => [`key-${n}`, 2] as const);

describe("Refusals by key", () => {
  test("count each key under its id", () => {
    expect(
      new Map(
        refused([
          ["a", 2],
          ["b", 1],
        ]),
      ),
    ).toEqual(
      new Map([
        ["a", 2],
        ["b", 1],
      ]),
    );
  });

  test("name fifty keys at most, and count the rest as other", () => {
    const counts = new Map(refused([...many, ["late-1", 2], ["late-2", 1]]));
    expect(counts.size).toBe(MAX_NAMED + 1);
    expect(counts.get("other other")).toBe(3);
  });

  test("name a key that is refused more than a named one, in its place and with all of its count", () => {
    const counts = new Map(refused([...many, ["worst", 30]]));
    expect(counts.get("worst")).toBe(30);
    expect(counts.size).toBe(MAX_NAMED + 1);
    expect([...counts.keys()].filter((keyId) => keyId.startsWith("key-"))).toHaveLength(MAX_NAMED - 1);
  });

  test("never let a count fall: what was counted as other stays there", () => {
    const refusals = refused([...many, ["worst", 2]]);
    const before = new Map(refusals).get("other other");
    refusals.add("worst");
    expect([before, new Map(refusals).get("other other")]).toEqual([2, 2]);
    expect(new Map(refusals).get("worst")).toBe(3);
  });
});
