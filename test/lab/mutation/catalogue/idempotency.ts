import type { Mutation } from "../mutation.ts";

const LUA = "shared/window/src/lua";
const CLAIMS_OVER_PARTITIONS = "shared/window/test/claims.test.ts";

/** Idempotency-Keys and the claims on them, which the window keeps. */
export const IDEMPOTENCY_MUTATIONS: readonly Mutation[] = [
  {
    name: "body of an idempotency claim",
    file: `${LUA}/accept/publications.lua`,
    find: "first[1] == claim.body and",
    replace: "true and",
    tests: ["shared/window/test/claims.test.ts"],
  },
  {
    name: "an Idempotency-Key is bound to one body, whatever the targets",
    file: `${LUA}/bind_claim.lua`,
    find: "if bound and bound ~= body then",
    replace: "if false then",
    tests: [CLAIMS_OVER_PARTITIONS, "services/gateway/test/idempotency.test.ts"],
  },
  {
    name: "an Idempotency-Key is bound before its request is accepted",
    file: "shared/window/src/acceptance/acceptor.ts",
    find: '(kind === "session_request" || claim !== undefined)',
    replace: 'kind === "session_request"',
    tests: [CLAIMS_OVER_PARTITIONS, "services/gateway/test/idempotency.test.ts"],
  },
  {
    name: "a claim lies where its envelope is accepted",
    file: "shared/window/src/acceptance/acceptance-call.ts",
    find: "partitionKeys.idempotency(item.partition, ",
    replace: "partitionKeys.idempotency(0, ",
    tests: [CLAIMS_OVER_PARTITIONS],
  },
  {
    name: "an accepted message keeps its claim",
    file: `${LUA}/accept/publications.lua`,
    find: "claims.keep(claim, status, '-')",
    replace: "",
    tests: ["shared/window/test/claims.test.ts", CLAIMS_OVER_PARTITIONS],
  },
  {
    name: "an accepted session request keeps its claim",
    file: `${LUA}/accept/sessions.lua`,
    find: "if claim then claims.keep(claim, status, id) end",
    replace: "",
    tests: ["shared/window/test/claims.test.ts", CLAIMS_OVER_PARTITIONS],
  },
  {
    name: "window id at the binding of an Idempotency-Key",
    file: `${LUA}/bind_claim.lua`,
    find: "~= window_id then",
    replace: "== '' then",
    tests: [CLAIMS_OVER_PARTITIONS],
  },
  {
    name: "an Idempotency-Key stays bound while it is used",
    file: `${LUA}/bind_claim.lua`,
    find: "redis.call('PEXPIRE', body_key, claim_kept)",
    replace: "redis.call('GET', body_key)",
    tests: [CLAIMS_OVER_PARTITIONS],
  },
  {
    name: "no Idempotency-Key is bound while Redis is short of memory",
    file: `${LUA}/bind_claim.lua`,
    find: "if not bound and is_short == '1' then",
    replace: "if false then",
    tests: [CLAIMS_OVER_PARTITIONS],
  },
];
