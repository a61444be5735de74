import { expect, test } from "@jest/globals";
import { ClusterInquiry } from "../src/redis/cluster-inquiry.ts";

test.each([
  ["redis-cluster://a:1,b:2", "10.0.0.1", "redis://10.0.0.1:6379"],
  ["redis-cluster://user:p%40ss@a:1", "redis-1.redis", "redis://user:p%40ss@redis-1.redis:6379"],
  ["rediss-cluster://:pass@[::1]:1", "fd00::1", "rediss://:pass@[fd00::1]:6379"],
])("a node of %s is reached with the same scheme and user: %s", (cluster, host, url) => {
  expect(new ClusterInquiry(cluster, "test").urlOf({ id: "a", host, port: 6379 })).toBe(url);
});
