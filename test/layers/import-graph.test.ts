import { describe, expect, test } from "@jest/globals";
import { circlesIn, type Import, PACKAGES, packageOf, readImports } from "./import-graph.ts";

/** Which of our packages each may import. Source: docs/architecture.md#layers. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  "relay-protocol": [],
  "relay-runtime": ["relay-protocol"],
  "relay-window": ["relay-protocol", "relay-runtime"],
  gateway: ["relay-protocol", "relay-runtime", "relay-window"],
  "ws-connector": ["relay-protocol", "relay-runtime", "relay-window"],
  "ops-reporting": ["relay-protocol", "relay-runtime", "relay-window"],
  "agent-relay-connector": ["relay-protocol"],
};
/** All that the connector may import of the relay. */
const WIRE = "shared/protocol/src/wire/";
const REDIS_PACKAGES = ["ioredis"];
const GATEWAY = "services/gateway/src";
/** The folders of the gateway, and those that each may import: documents show what the API answers. */
const IN_GATEWAY: Readonly<Record<string, readonly string[]>> = { api: [], discovery: ["api"], pages: [] };

const imports = await readImports();
const shown = ({ from, to }: Import) => `${from} -> ${to}`;

describe("the sources", () => {
  test("are found, with their imports of each other and of packages", () => {
    expect(new Set(imports.map(({ from }) => packageOf(from)))).toEqual(new Set(PACKAGES));
    const names = imports.map(shown);
    expect(names).toContain("services/gateway/src/run.ts -> services/gateway/src/service.ts");
    expect(names).toContain("services/gateway/src/run.ts -> shared/runtime/src/http/http-service.ts");
    expect(imports.some(({ from, to }) => packageOf(from) === "relay-window" && to === "ioredis")).toBe(true);
  });

  test("import each other in no circle, types included", () => {
    expect(circlesIn(imports)).toEqual([]);
  });

  test.each(PACKAGES)("of %s import no package of ours above or beside it", (name) => {
    const foreign = imports.filter(({ from, to }) => {
      const target = packageOf(to);
      const isOurs = target !== undefined || /^(shared|services|connector|deploy|test|testing)\//.test(to);
      return packageOf(from) === name && isOurs && target !== name && !ALLOWED[name]?.includes(target ?? "");
    });
    expect(foreign.map(shown)).toEqual([]);
  });

  test.each(Object.keys(IN_GATEWAY))("of the gateway's %s import no other of its folders than they may", (name) => {
    const others = Object.keys(IN_GATEWAY).filter((other) => other !== name && !IN_GATEWAY[name]?.includes(other));
    const crossing = imports.filter(
      ({ from, to }) =>
        from.startsWith(`${GATEWAY}/${name}/`) && others.some((other) => to.startsWith(`${GATEWAY}/${other}/`)),
    );
    expect(crossing.map(shown)).toEqual([]);
  });

  test("of the wire need nothing but each other: no schema, no cryptography, nothing of Node", () => {
    const foreign = imports.filter(({ from, to }) => from.startsWith(WIRE) && !to.startsWith(WIRE));
    expect(foreign.map(shown)).toEqual([]);
  });

  test("of the connector import of the relay nothing but the wire", () => {
    const foreign = imports.filter(
      ({ from, to }) =>
        packageOf(from) === "agent-relay-connector" && packageOf(to) === "relay-protocol" && !to.startsWith(WIRE),
    );
    expect(foreign.map(shown)).toEqual([]);
  });

  test("of window alone import a client of Redis", () => {
    const others = imports.filter(({ from, to }) => packageOf(from) !== "relay-window" && REDIS_PACKAGES.includes(to));
    expect(others.map(shown)).toEqual([]);
  });
});

test("a circle is found, whatever its length, and nothing that only leads into one", () => {
  const graph = (...pairs: string[]) => pairs.map((pair) => ({ from: pair[0] as string, to: pair[1] as string }));
  expect(circlesIn(graph("ab", "bc", "cd", "ad"))).toEqual([]);
  expect(circlesIn(graph("aa"))).toEqual([["a"]]);
  expect(circlesIn(graph("xa", "ab", "bc", "ca", "cy", "de", "ed", "cd"))).toEqual([
    ["a", "b", "c"],
    ["d", "e"],
  ]);
});
