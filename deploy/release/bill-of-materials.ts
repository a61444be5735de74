import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT, run } from "./command.ts";

const SERVICES = ["gateway", "ws-connector", "ops-reporting"] as const;
const INSTALLED = "node_modules/";

interface LockFile {
  readonly packages: Readonly<Record<string, { devDependencies?: unknown }>>;
}

/**
 * What the services consist of, from the lock file alone: a CycloneDX document in JSON. It is made of a copy that knows no dependencies
 * of development: `npm sbom --omit dev` leaves out what anybody needs for development, also where a service runs on it.
 */
export async function billOfMaterials(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "agent-relay-sbom-"));
  try {
    await copyWithoutDevelopment(folder);
    const services = SERVICES.flatMap((service) => ["--workspace", `services/${service}`]);
    const form = ["--sbom-format", "cyclonedx", "--package-lock-only"];
    return await run("npm", ["sbom", "--prefix", folder, ...form, ...services]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function copyWithoutDevelopment(folder: string): Promise<void> {
  const lock: LockFile = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8"));
  for (const [path, entry] of Object.entries(lock.packages)) {
    entry.devDependencies = undefined;
    if (path.includes(INSTALLED)) continue;
    const { devDependencies, ...manifest } = JSON.parse(await readFile(join(ROOT, path, "package.json"), "utf8"));
    await mkdir(join(folder, path), { recursive: true });
    await writeFile(join(folder, path, "package.json"), JSON.stringify(manifest));
  }
  await writeFile(join(folder, "package-lock.json"), JSON.stringify(lock));
}
