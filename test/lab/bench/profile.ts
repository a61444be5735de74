import { readFileSync } from "node:fs";

/**
 * `node test/lab/bench/profile.ts <file.cpuprofile>…`: where the time of a server went. First by the package or file of ours
 * that was at work, with all that Node did for it; then by function, itself alone. Idle time and the loading of modules
 * are left out.
 */

const OWNERS_SHOWN = 25;
const FUNCTIONS_SHOWN = 30;

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  readonly children?: readonly number[];
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  /** µs between samples. */
  readonly timeDeltas: readonly number[];
}

/** Where a sample of one node counts; undefined when it does not. */
type Places = ReadonlyMap<number, { readonly owner: string; readonly name: string } | undefined>;

for (const file of process.argv.slice(2)) {
  const profile = JSON.parse(readFileSync(file, "utf8")) as Profile;
  const places = placesOf(profile);
  process.stdout.write(`\n${file}\n`);
  printShares(profile, (id) => places.get(id)?.owner, OWNERS_SHOWN);
  printShares(profile, (id) => places.get(id)?.name, FUNCTIONS_SHOWN);
}

function printShares(profile: Profile, groupOf: (id: number) => string | undefined, shown: number): void {
  const times = new Map<string, number>();
  profile.samples.forEach((id, n) => {
    const group = groupOf(id);
    if (group !== undefined) times.set(group, (times.get(group) ?? 0) + (profile.timeDeltas[n] ?? 0));
  });
  const busy = [...times.values()].reduce((sum, micros) => sum + micros, 0);
  process.stdout.write(`\n${(busy / 1e6).toFixed(2)} s\n`);
  const sorted = [...times].sort(([, a], [, b]) => b - a).slice(0, shown);
  for (const [group, micros] of sorted) {
    process.stdout.write(`${((100 * micros) / busy).toFixed(1).padStart(5)} %  ${group}\n`);
  }
}

function placesOf({ nodes }: Profile): Places {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const places = new Map<number, { owner: string; name: string } | undefined>();
  const visit = (node: ProfileNode, caller: string) => {
    const { functionName, url } = node.callFrame;
    if (functionName === "(idle)" || url.startsWith("node:internal/modules")) return;
    const owner = ownerOf(node) ?? caller;
    places.set(node.id, { owner, name: nameOf(node) });
    for (const child of node.children ?? []) visit(byId.get(child) as ProfileNode, owner);
  };
  visit(nodes[0] as ProfileNode, "Node alone");
  return places;
}

/** A package, or a file of ours; undefined for what Node did for its caller. */
function ownerOf({ callFrame: { functionName, url } }: ProfileNode): string | undefined {
  if (url.startsWith("node:") || url === "") return functionName === "(garbage collector)" ? functionName : undefined;
  const place = placeOf(url);
  return /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(place)?.[0] ?? place;
}

function nameOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const name = functionName || "(anonymous)";
  return url === "" ? name : `${name}  ${placeOf(url)}:${lineNumber + 1}`;
}

function placeOf(url: string): string {
  return url.replace(/^.*\/(node_modules|services|shared|test)\//, "$1/");
}
