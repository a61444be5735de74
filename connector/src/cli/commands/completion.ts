import { readArguments } from "../arguments.ts";
import type { Command, CommandEntry } from "../command.ts";
import { COMPLETIONS, type Completable } from "../completion.ts";
import { EXIT } from "../exit-codes.ts";
import { usageError } from "../failure.ts";

/** @param commands whose names and options are completed. */
export const completionOf = (commands: readonly CommandEntry[]): Command => ({
  help: `relay completion <shell>: print a script that makes bash, zsh or fish complete commands and options.

  bash:  source <(relay completion bash)
  zsh:   source <(relay completion zsh)
  fish:  relay completion fish > ~/.config/fish/completions/relay.fish
`,
  run: async (args, io) => {
    const { positionals } = readArguments(args, {});
    const [shell = "", ...others] = positionals;
    const script = Object.hasOwn(COMPLETIONS, shell) ? COMPLETIONS[shell] : undefined;
    if (script === undefined || others.length > 0) throw usageError("Name one shell: bash, zsh or fish.");
    io.stdout.write(script(await Promise.all(commands.map(completableOf))));
    return EXIT.ok;
  },
});

const OPTION = /^ {2}(--[a-z][a-z-]*)/gm;

/** The options are those that its help lists, with those of every command. */
async function completableOf({ name, summary, load }: CommandEntry): Promise<Completable> {
  const { help } = await load();
  const listed = Array.from(help.matchAll(OPTION), ([, option]) => option as string);
  return { name, summary, options: [...new Set([...listed, "--json", "--help"])] };
}
