import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Connectors } from "relay-protocol/contract/packages.ts";
import { startRelay } from "../../testing/src/index.ts";
import type { Machine } from "../packages/npm.ts";
import { madePackages } from "../support/packages.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const SAMPLE = join(REPOSITORY, "examples/testing");

/**
 * A copy of `examples/testing` on a machine without a registry, with the packages that a relay hands out installed from it.
 * What its package.json asks of a registry comes from this repository.
 */
export async function installedSample(machine: Machine): Promise<string> {
  const project = await machine.folder("sample");
  await cp(SAMPLE, project, { recursive: true });
  const { devDependencies, ...manifest } = JSON.parse(await readFile(join(SAMPLE, "package.json"), "utf8"));
  await writeFile(join(project, "package.json"), JSON.stringify(manifest));
  await using relay = await startRelay({ environment: { RELAY_PACKAGES_DIR: await madePackages() } });
  const { packages } = Connectors.parse(await (await fetch(`${relay.url}/connectors`)).json());
  for (const name of ["agent-relay-connector", "agent-relay-testing"]) {
    const { url } = packages.find((one) => one.name === name) as { url: string };
    const { code, stderr } = await machine.shell(`npm install ${url}`, project);
    if (code !== 0) throw new Error(`npm install ended with ${code}: ${stderr}`);
  }
  for (const name of Object.keys(devDependencies)) {
    const link = join(project, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(REPOSITORY, "node_modules", name), link);
  }
  return project;
}
