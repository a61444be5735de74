/** Items in an order in which no two are equal. */
export class SortedList<Item> {
  readonly items: Item[] = [];
  readonly #compare: (a: Item, b: Item) => number;

  constructor(compare: (a: Item, b: Item) => number) {
    this.#compare = compare;
  }

  add(item: Item): void {
    this.items.splice(this.#indexOf(item), 0, item);
  }

  delete(item: Item): void {
    const index = this.#indexOf(item);
    if (this.items[index] === item) this.items.splice(index, 1);
  }

  /** The first items, as far as the condition holds. */
  takeWhile(holds: (item: Item) => boolean): Item[] {
    const end = this.items.findIndex((item) => !holds(item));
    return end === -1 ? [...this.items] : this.items.slice(0, end);
  }

  /** Where the item is, or would be. */
  #indexOf(item: Item): number {
    let [low, high] = [0, this.items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(this.items[middle] as Item, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
