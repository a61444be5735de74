import { LinkDownError } from "../src/redis/link-down.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import { unavailable } from "../src/unavailable.ts";

/** A link on which some keys are refused as those of a primary that is lost. */
export class PartialLink {
  readonly link: RedisLink;
  #lost: readonly string[] = [];

  constructor(link: RedisLink) {
    this.link = link;
    const [run, command] = [link.run.bind(link), link.command.bind(link)];
    link.run = async (script, keys, args) => {
      this.#refuse(keys[0]);
      return await run(script, keys, args);
    };
    link.command = async (name, ...args) => {
      this.#refuse(args[0]);
      return await command(name, ...args);
    };
  }

  /** From here on all keys in the slots of these are out of reach, and no others. */
  lose(...keys: readonly string[]): void {
    this.#lost = keys.map(tagOf);
  }

  #refuse(key: unknown): void {
    if (this.#lost.includes(tagOf(String(key)))) throw unavailable(new LinkDownError("refused", "lost by the test"));
  }
}

function tagOf(key: string): string {
  return /\{(\w+)\}/.exec(key)?.[1] ?? "";
}
