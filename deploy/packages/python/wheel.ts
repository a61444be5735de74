import { createHash } from "node:crypto";
import { type ZippedFile, zip } from "../zip.ts";

/** What pyproject.toml says of the package. */
export interface Project {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly requiresPython: string;
  readonly dependencies: readonly string[];
}

const WHEEL = "Wheel-Version: 1.0\nGenerator: agent-relay\nRoot-Is-Purelib: true\nTag: py3-none-any\n";

/** Reads the fields that a wheel needs: each a line of its own in `[project]`, and JSON but for its name. */
export function projectOf(toml: string): Project {
  const field = (name: string) => {
    const [, value] = new RegExp(`^${name} = (.*)$`, "m").exec(toml) ?? [];
    if (value === undefined) throw new Error(`pyproject.toml has no ${name}`);
    return JSON.parse(value);
  };
  return {
    name: field("name"),
    version: field("version"),
    description: field("description"),
    requiresPython: field("requires-python"),
    dependencies: field("dependencies"),
  };
}

export function wheelFile({ name }: Project, version: string): string {
  return `${name}-${localVersion(version)}-py3-none-any.whl`;
}

/** A wheel as `python3 -m build` makes it, the same bytes on every machine, without Python. */
export function wheel(project: Project, version: string, modules: readonly ZippedFile[], readme: string): Buffer {
  const folder = `${project.name}-${localVersion(version)}.dist-info`;
  const files = [
    ...modules,
    { path: `${folder}/METADATA`, content: Buffer.from(metadata(project, version, readme)) },
    { path: `${folder}/WHEEL`, content: Buffer.from(WHEEL) },
  ];
  const record = [...files.map(recorded), `${folder}/RECORD,,`, ""].join("\n");
  return zip([...files, { path: `${folder}/RECORD`, content: Buffer.from(record) }]);
}

/** In Python a digest of hexadecimal digits is no prerelease, but a local version: `1.0.0+b3f2a…`. */
function localVersion(version: string): string {
  return version.replace("-", "+").replaceAll("-", ".");
}

function metadata({ name, description, requiresPython, dependencies }: Project, version: string, readme: string) {
  const required = dependencies.map((dependency) => `Requires-Dist: ${dependency}`);
  return [
    "Metadata-Version: 2.1",
    `Name: ${name}`,
    `Version: ${localVersion(version)}`,
    `Summary: ${description}`,
    `Requires-Python: ${requiresPython}`,
    "Description-Content-Type: text/markdown",
    ...required,
    "",
    readme,
  ].join("\n");
}

function recorded({ path, content }: ZippedFile): string {
  return `${path},sha256=${createHash("sha256").update(content).digest("base64url")},${content.length}`;
}
