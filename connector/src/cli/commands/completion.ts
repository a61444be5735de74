import { COMMON, readArguments } from "../arguments.ts";
import { EXIT, usageError } from "../failure.ts";
import type { Command, CommandEntry } from "../io.ts";
import { jsonLine } from "../io.ts";

/** @param commands whose names and options are completed. */
export const completionOf = (commands: readonly CommandEntry[]): Command => ({
  usage: "bash|zsh|fish",
  options: {},
  examples: ["source <(relay completion bash)", "relay completion fish > ~/.config/fish/completions/relay.fish"],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {});
    const [shell = "", ...others] = positionals;
    const script = Object.hasOwn(COMPLETIONS, shell) ? COMPLETIONS[shell] : undefined;
    if (script === undefined || others.length > 0) throw usageError("Name one shell: bash, zsh or fish.");
    const text = script(await Promise.all(commands.map(completableOf)));
    io.stdout.write(values.json ? `${jsonLine({ ok: true, shell, script: text })}\n` : text);
    return EXIT.ok;
  },
});

async function completableOf({ name, summary, load }: CommandEntry): Promise<Completable> {
  const { options } = await load();
  const names = [...Object.keys({ ...options, ...COMMON }), "help"];
  return { name, summary, options: names.map((option) => `--${option}`) };
}

/** What a shell completes: a command with its summary, and its options, with their hyphens. */
interface Completable {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly string[];
}

/** By shell: the script that makes it complete the words of `relay`; file names where no option begins. */
const COMPLETIONS: Readonly<Record<string, (commands: readonly Completable[]) => string>> = {
  bash: (commands) => `_relay() {
  local word=\${COMP_WORDS[COMP_CWORD]} options=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(" ")}" -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${commands.map(({ name, options }) => `    ${name}) options="${options.join(" ")}" ;;`).join("\n")}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _relay relay
`,
  zsh: (commands) => `#compdef relay
_relay() {
  local -a commands options
  if (( CURRENT == 2 )); then
    commands=(${commands.map(({ name, summary }) => `'${name}:${summary}'`).join(" ")})
    _describe command commands
    return
  fi
  case $words[2] in
${commands.map(({ name, options }) => `    ${name}) options=(${options.join(" ")}) ;;`).join("\n")}
  esac
  if [[ $PREFIX == -* ]]; then compadd -- $options; else _files; fi
}
compdef _relay relay
`,
  fish: (commands) =>
    commands
      .flatMap(({ name, summary, options }) => [
        `complete -c relay -n __fish_use_subcommand -f -a ${name} -d '${summary}'`,
        ...options.map((option) => `complete -c relay -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`),
      ])
      .join("\n")
      .concat("\n"),
};
