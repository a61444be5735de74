import type { Environment } from "relay-runtime/settings.ts";
import type { Agents, CountsAnswer, NoisiestAnswer } from "./answers.ts";
import {
  agentOf,
  holderQueryOf,
  keyFileOf,
  limitOf,
  MAX_LIMIT,
  type Options,
  parseCommandLine,
  UsageError,
  urlsOf,
} from "./command-line.ts";
import { mergedCounts, mergedNoise } from "./merge.ts";
import { Pods } from "./pods.ts";
import { agentsText, countsText, noisiestText } from "./tables.ts";
import { USAGE } from "./usage.ts";

/** What a command prints, and of each pod that gave no answer a sentence that says why. */
export interface Output {
  readonly text: string;
  readonly unanswered: readonly string[];
}

/** Runs one command of `npm run admin`. @throws {UsageError | Error} that says what to do. */
export async function runAdminCommand(args: string[], environment: Environment): Promise<Output> {
  const { values, positionals } = parseCommandLine(args);
  const [command, ...rest] = positionals;
  if (values.help === true || command === undefined) return { text: USAGE, unanswered: [] };

  const ask = commandOf(command, rest, values);
  const pods = await Pods.at(urlsOf(values, environment), keyFileOf(values, environment));
  const { answer, text, unanswered } = await ask(pods);
  return { text: values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : text, unanswered };
}

/** An answer, and how it is shown. */
type Ask = (pods: Pods) => Promise<Output & { readonly answer: object }>;

const COMMANDS: readonly string[] = ["counts", "agents", "disconnect", "noisiest"];

/** @throws {UsageError} */
function commandOf(command: string, rest: readonly string[], options: Options): Ask {
  if (!COMMANDS.includes(command)) {
    throw new UsageError(`There is no command ${command}: there are ${COMMANDS.join(", ")}.`);
  }
  if (command === "disconnect") return disconnecting(agentOf(rest));
  if (rest.length > 0) throw new UsageError(`${command} takes no further arguments.`);
  if (command === "counts") return counting;
  if (command === "agents") return listing(holderQueryOf(options));
  return ranking(limitOf(options));
}

const counting: Ask = async (pods) => {
  const { answers, unanswered } = await pods.askAll<CountsAnswer>({ path: "/admin/counts", member: "pod" });
  const answer = mergedCounts(answers);
  return { answer, text: countsText(answer), unanswered };
};

function listing(query: string): Ask {
  return async (pods) => {
    const { answers, unanswered } = await pods.askFirst<Agents>({ path: `/admin/agents?${query}`, member: "agents" });
    const [answer] = answers as [Agents];
    return { answer, text: agentsText(answer), unanswered };
  };
}

function disconnecting(agent: string): Ask {
  return async (pods) => {
    const { answers, unanswered } = await pods.askFirst<object>({
      path: "/admin/disconnect",
      member: "disconnected",
      body: { agent },
    });
    const [answer] = answers as [object];
    return {
      answer,
      text: `The connection of ${agent} is being closed. Its connector may come back at once.\n`,
      unanswered,
    };
  };
}

/** Who is noisy on all pods together may not be among the first of each. */
function ranking(limit: number): Ask {
  return async (pods) => {
    const { answers, unanswered } = await pods.askAll<NoisiestAnswer>({
      path: `/admin/noisiest?limit=${MAX_LIMIT}`,
      member: "by_bytes",
    });
    const answer = mergedNoise(answers, limit);
    return { answer, text: noisiestText(answer), unanswered };
  };
}
