import type { Counts, CountsAnswer, Noisiest, NoisiestAnswer, RefusedCode, Sender } from "./answers.ts";

/** Of the window what the first pod says, and each pod's own part. Pure. */
export function mergedCounts(answers: readonly CountsAnswer[]): Counts {
  const [{ pod: _, ...ofWindow }] = answers as [CountsAnswer];
  return { ...ofWindow, pods: answers.map(({ pod }) => pod) };
}

/** What each sender sent to all of the pods, and how often it was refused there. Pure. @param most of each list. */
export function mergedNoise(answers: readonly NoisiestAnswer[], most: number): Noisiest {
  // A sender may be among the first by one measure alone: of each pod once.
  const senders = answers.flatMap(({ by_envelopes, by_bytes }) => [
    ...new Map([...by_envelopes, ...by_bytes].map((sender) => [nameOf(sender), sender])).values(),
  ]);
  const sent = summed(senders, nameOf, (a, b) => ({
    ...a,
    envelopes: a.envelopes + b.envelopes,
    bytes: a.bytes + b.bytes,
  }));
  const top = (by: "envelopes" | "bytes") => sent.toSorted((a, b) => b[by] - a[by]).slice(0, most);
  const refusals = answers.map((answer) => answer.refusals);
  return {
    pods: answers.map(({ pod }) => pod),
    span_seconds: Math.max(...answers.map(({ span_seconds }) => span_seconds)),
    by_envelopes: top("envelopes"),
    by_bytes: top("bytes"),
    refusals: {
      since: refusals.map(({ since }) => since).sort()[0] as string,
      by_sender: mostOften(
        refusals.flatMap(({ by_sender }) => by_sender),
        nameOf,
        most,
      ),
      by_code: mostOften(
        refusals.flatMap(({ by_code }) => by_code),
        ({ code }: RefusedCode) => code,
        most,
      ),
    },
  };
}

function nameOf({ kind, id }: Pick<Sender, "kind" | "id">): string {
  return `${kind} ${id}`;
}

function mostOften<Item extends { readonly times: number }>(
  items: readonly Item[],
  nameOfItem: (item: Item) => string,
  most: number,
): Item[] {
  const all = summed(items, nameOfItem, (a, b) => ({ ...a, times: a.times + b.times }));
  return all.toSorted((a, b) => b.times - a.times).slice(0, most);
}

function summed<Item>(
  items: readonly Item[],
  nameOfItem: (item: Item) => string,
  sum: (a: Item, b: Item) => Item,
): Item[] {
  const byName = new Map<string, Item>();
  for (const item of items) {
    const name = nameOfItem(item);
    const before = byName.get(name);
    byName.set(name, before === undefined ? item : sum(before, item));
  }
  return [...byName.values()];
}
