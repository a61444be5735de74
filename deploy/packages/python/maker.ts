import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { ADDRESS } from "relay-protocol/contract/packages.ts";
import { filesIn, textOf } from "../files.ts";
import { firstProgramIn } from "../first-program.ts";
import { type Draft, type Maker, SHA512 } from "../release.ts";
import type { ZippedFile } from "../zip.ts";
import { projectOf, wheel, wheelFile } from "./wheel.ts";

const VERSION_MODULE = "agent_relay_connector/version.py";
const FOLDER = fileURLToPath(new URL("../../../connector-python", import.meta.url));

/** The connector for Python, as a wheel. */
export const pythonConnector: Maker = {
  sources: ["connector-python/src", "connector-python/pyproject.toml", "connector-python/README.md"],
  make: async () => {
    const project = projectOf(await textOf(join(FOLDER, "pyproject.toml")));
    const [modules, readme] = [await modulesIn(join(FOLDER, "src")), await textOf(join(FOLDER, "README.md"))];
    const draft: Draft = {
      name: project.name,
      media: "application/zip",
      purpose: "Connects an agent, from Python: an asyncio library with types.",
      needs: "Python 3.10 or later; pip gets websockets and cryptography, or Debian has them",
      usage: [
        { for: "make an environment", line: "python3 -m venv --system-site-packages .venv" },
        { for: "add the library to it", line: `.venv/bin/pip install ${ADDRESS}#sha512=${SHA512}` },
        { for: "import it", line: "from agent_relay_connector import Connector, RelayError" },
      ],
      first_program: firstProgramIn(readme, "python quickstart"),
      manual:
        "METADATA in its folder of .venv/lib/python3.*/site-packages, once it is installed: .venv/bin/python -c 'from importlib.metadata import metadata; print(metadata(\"agent_relay_connector\").get_payload())'",
      file: (version) => wheelFile(project, version),
      contents: (version) => wheel(project, version, modules.map(versioned(project.version, version)), readme),
    };
    return { number: project.version, drafts: [draft] };
  },
};

/** Sources say their number alone, a package which build of it it is. */
function versioned(number: string, version: string): (module: ZippedFile) => ZippedFile {
  return ({ path, content }) => {
    if (path !== VERSION_MODULE) return { path, content };
    const [own, stamped] = [number, version].map((said) => `VERSION = "${said}"\n`) as [string, string];
    if (!content.includes(own)) throw new Error(`${VERSION_MODULE} has not the version of pyproject.toml`);
    return { path, content: Buffer.from(content.toString().replace(own, stamped)) };
  };
}

async function modulesIn(folder: string): Promise<ZippedFile[]> {
  const files = (await filesIn(folder)).filter((file) => /\.py$|\/py\.typed$/.test(file));
  return await Promise.all(
    files.map(async (file) => ({ path: relative(folder, file), content: Buffer.from(await textOf(file)) })),
  );
}
