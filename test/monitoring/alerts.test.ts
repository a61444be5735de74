import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { parse } from "yaml";
import { prometheusPrograms } from "../../deploy/local/prometheus-program.mjs";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Each alert, judged by promtool over half an hour of samples, one each 30 s. */

const RULES = new URL("../../deploy/monitoring/rules.yml", import.meta.url).pathname;
const LONG = 60;

/** A series that stays what it is. */
const stays = (value: number) => `${value}x${LONG}`;
/** A counter that rises by so much a second. */
const rises = (perSecond: number) => `0+${perSecond * 30}x${LONG}`;
/** A process that begins anew four times in the half hour. */
const RESTARTS = `1x12 2x12 3x12 4x12 5x12`;
/** What Prometheus has of a target that it no longer reaches. */
const GONE = `1x${LONG - 10} stale`;
const WEEK = 7 * 86_400;

type Series = Readonly<Record<string, string>>;
/** Series under which an alert fires, and others under which it does not. */
type Case = readonly [fires: Series, ...calm: Series[]];

const one = (series: string, fires: string, calm: string): Case => [{ [series]: fires }, { [series]: calm }];
const buckets = (name: string, below: string, above: string, under: string): Case => [
  {
    [`${name}_bucket{le="${below}"}`]: rises(0),
    [`${name}_bucket{le="${above}"}`]: rises(10),
    [`${name}_bucket{le="+Inf"}`]: rises(10),
  },
  {
    [`${name}_bucket{le="${under}"}`]: rises(10),
    [`${name}_bucket{le="${above}"}`]: rises(10),
    [`${name}_bucket{le="+Inf"}`]: rises(10),
  },
];

const up = (service: string) => `relay_redis_up{service="${service}"}`;
const deliveries = (online: string, notSeen: string): Series => ({
  'relay_deliveries_total{status="online"}': online,
  'relay_deliveries_total{status="not_seen"}': notSeen,
});

const CASES: Readonly<Record<string, Case>> = {
  ServiceGone: [
    { [up("gateway")]: stays(1), [up("ws-connector")]: GONE, [up("ops-reporting")]: stays(0) },
    { [up("gateway")]: stays(1), [up("ws-connector")]: stays(0), [up("ops-reporting")]: stays(0) },
  ],
  RedisDown: [
    { 'relay_redis_up{service="gateway",instance="a",link="gateway"}': stays(0) },
    {
      'relay_redis_up{service="gateway",instance="a",link="gateway"}': stays(1),
      'relay_redis_up{service="gateway",instance="a",link="gateway-channel"}': stays(0),
    },
  ],
  PartitionsOutOfReach: one('relay_partitions_out_of_reach{service="gateway"}', stays(4), stays(0)),
  PartitionsUnheard: one('relay_partitions_unheard{service="ws-connector"}', stays(4), stays(0)),
  RedisMisconfigured: [
    { 'relay_redis_down{service="gateway",kind="noperm"}': stays(1) },
    { 'relay_redis_down{service="gateway",kind="timeout"}': stays(1) },
  ],
  RedisMemoryShort: one('relay_redis_memory_ratio{service="gateway"}', stays(0.71), stays(0.69)),
  WindowLost: [
    { 'relay_window_start_time_seconds{deploy="a"}': `100x${LONG - 10} 200x10` },
    {
      // A rollout, and the way back: each image opens a window of its own.
      'relay_window_start_time_seconds{deploy="a"}': `100x${LONG - 10} stale _x4 300x5`,
      'relay_window_start_time_seconds{deploy="b"}': `_x${LONG - 11} 200x5 stale`,
    },
  ],
  PrimaryPromoted: one("relay_promotions_total", `0x${LONG - 10} 1x10`, stays(1)),
  ReplicaMissing: one('relay_redis_replicas{link="gateway@1"}', stays(0), stays(1)),
  ReplicaLags: one('relay_redis_replica_lag_bytes{link="gateway@1"}', stays(2_000_000), stays(1000)),
  RedisClockWrong: one('relay_redis_clock_offset_seconds{link="gateway"}', stays(-1.1), stays(-0.9)),
  KeysFileInvalid: one('relay_keys_file_valid{service="gateway",instance="a"}', stays(0), stays(1)),
  CertificateEnds: one('relay_certificate_end_time_seconds{service="gateway"}', stays(WEEK), stays(WEEK + 2000)),
  AuditLinesLost: one('relay_audit_lines_lost_total{service="gateway"}', rises(0.1), stays(3)),
  CountsLost: one('relay_counts_lost_total{service="gateway"}', rises(0.1), stays(3)),
  ChannelNotReady: one("relay_channel_ready", stays(0), stays(1)),
  RedisSlow: buckets("relay_redis_call_seconds", "0.1", "0.25", "0.05"),
  RedisCallsFail: one("relay_redis_failures_total", rises(0.2), rises(0.05)),
  EventLoopLag: one("nodejs_eventloop_lag_p99_seconds", stays(0.11), stays(0.09)),
  AcceptanceSaturated: buckets("relay_acceptance_batch_size", "128", "256", "64"),
  ConnectionsNearLimit: one("relay_connections", stays(40_001), stays(39_999)),
  ConnectionsRefused: one('relay_connections_refused_total{code="over_capacity"}', rises(0.1), stays(7)),
  LimitsStrike: one('relay_limits_total{limit="envelopes"}', rises(1.1), rises(0.9)),
  SessionsGuessed: one('relay_http_requests_total{surface="readSession",status="404"}', rises(1.1), rises(0.9)),
  SlowConsumers: one('relay_connections_closed_total{code="1013"}', rises(1.1), rises(0.9)),
  OpenFilesShort: [
    { process_open_fds: stays(91), process_max_fds: stays(100) },
    { process_open_fds: stays(89), process_max_fds: stays(100) },
  ],
  OutboxesLarge: one("relay_outbox_bytes", stays(134_217_729), stays(134_217_727)),
  SignaturesRefused: one('relay_refusals_total{code="bad_signature"}', rises(1.1), rises(0.9)),
  ApiKeysRefused: one('relay_refusals_total{code="missing_api_key"}', rises(1.1), rises(0.9)),
  KeyRefused: [
    { 'relay_key_refusals_total{kind="key",id="key-1"}': rises(1.1) },
    { 'relay_key_refusals_total{kind="other",id="other"}': rises(9) },
  ],
  InternalErrors: one('relay_refusals_total{code="internal_error"}', rises(0.1), stays(2)),
  TargetsOffline: [
    deliveries(`0+30x${LONG - 20} 1200x20`, `0x${LONG - 20} 0+30x20`),
    deliveries(rises(0.5), rises(0.5)),
    // Too few to tell.
    deliveries(`0+2x${LONG - 20} 80x20`, `0x${LONG - 20} 0+2x20`),
  ],
  DeliveriesToGoneConnections: one('relay_deliver_frames_total{outcome="connection_gone"}', rises(11), rises(9)),
  RestartingPods: one("process_start_time_seconds", RESTARTS, stays(1)),
};

const rules: readonly { readonly alert: string }[] = parse(await readFile(RULES, "utf8")).groups[0].rules;

test("Each alert has a case here", () => {
  expect(Object.keys(CASES)).toEqual(rules.map(({ alert }) => alert));
});

test.each(Object.entries(CASES))("%s fires of what it is for, and of nothing less", async (alert, [fires, ...calm]) => {
  await using folder = await temporaryFolder();
  const [rule_files, file] = [[join(folder.path, "rule.json")], join(folder.path, "test.json")];
  const rule = rules.filter((each) => each.alert === alert);
  const tests = [judged(alert, fires, true), ...calm.map((series) => judged(alert, series, false))];
  await writeFile(rule_files[0] as string, JSON.stringify({ groups: [{ name: "rule", rules: rule }] }));
  await writeFile(file, JSON.stringify({ rule_files, evaluation_interval: "30s", tests }));
  await promisify(execFile)(prometheusPrograms().promtool, ["test", "rules", file]).catch((error) => {
    throw new Error(error.stdout + error.stderr);
  });
});

function judged(alert: string, series: Series, isFiring: boolean): object {
  const expr = `count(ALERTS{alertname="${alert}",alertstate="firing"})`;
  return {
    name: `${alert} ${isFiring ? "fires" : "is calm"}`,
    interval: "30s",
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [{ expr, eval_time: "30m", exp_samples: isFiring ? [{ labels: "{}", value: 1 }] : [] }],
  };
}
