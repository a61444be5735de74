import { run } from "./create-cluster-run.ts";

/** Makes a Redis Cluster, and mends one. Source: docs/operations.md#running-a-redis-cluster. */
process.exitCode = await run(process);
