import type { Mutation } from "../mutation.ts";

const SERVING = "test/packages/serving.test.ts";

/** The packages that the relay hands out. */
export const PACKAGE_MUTATIONS: readonly Mutation[] = [
  {
    name: "names of packages stay in their folder",
    file: "shared/protocol/src/contract/packages.ts",
    find: "  .regex(/^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$/)\n",
    replace: "",
    tests: [SERVING],
  },
  {
    name: "bytes of packages are those of the index",
    file: "services/gateway/src/discovery/packages.ts",
    find: '.digest("base64")}` === integrity) return content;',
    replace: '.digest("base64")}` !== "") return content;',
    tests: [SERVING],
  },
  {
    name: "an error that nobody catches is printed without the package around it",
    file: "deploy/packages/bundle.ts",
    find: "    lineLimit: 160,\n",
    replace: "",
    tests: ["test/packages/making.test.ts"],
  },
  {
    name: "the version of packages follows their content",
    file: "deploy/packages/version.ts",
    find: ".update(contents(PLACEHOLDER))",
    replace: "",
    tests: ["test/packages/making.test.ts"],
  },
];
