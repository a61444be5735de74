import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";

/** The languages of the templates, with the packages of the relay that each needs, by the mark that stands for the address. */
export const LANGUAGES = {
  typescript: { connector: "agent-relay-connector", testing: "agent-relay-testing" },
  python: { connector: "agent_relay_connector", testing: "agent-relay-testing" },
} as const;
export type Language = keyof typeof LANGUAGES;

/** `{{name}}`; within quotes, which TypeScript, Python and JSON share, the whole literal. */
const MARK = /"\{\{(\w+)\}\}"|\{\{(\w+)\}\}/g;

/** The files of a template by name, each mark replaced by its value. */
export async function filledTemplate(language: Language, values: Readonly<Record<string, string>>) {
  const folder = new URL(`templates/${language}/`, packageFolder());
  const entries = await readdir(folder, { withFileTypes: true });
  // A folder is none of it: Python leaves what it compiled beside its modules.
  const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  const files = names.sort().map(async (name) => {
    const text = await readFile(new URL(name, folder), "utf8");
    return [nameOf(name), filled(text, values)] as const;
  });
  return new Map(await Promise.all(files));
}

function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(MARK, (mark, quoted?: string, bare?: string) => {
    const value = values[quoted ?? bare ?? ""];
    if (value === undefined) return mark;
    return quoted === undefined ? value : JSON.stringify(value);
  });
}

/** npm renames a .gitignore when it installs a package. */
function nameOf(file: string): string {
  return file === "gitignore" ? ".gitignore" : file;
}

/** Of the connector's package: in the sources, and in what a relay hands out, where all modules lie in one folder. */
function packageFolder(): URL {
  let folder = new URL(".", import.meta.url);
  while (!existsSync(new URL("package.json", folder))) folder = new URL("..", folder);
  return folder;
}
